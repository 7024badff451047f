// Package repository tests the repository itself. It contains only tests.
package repository

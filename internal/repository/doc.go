// Package repository tests the repository itself. It has no code of its own.
package repository

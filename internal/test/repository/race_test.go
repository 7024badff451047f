//go:build race

package repository

const race = true

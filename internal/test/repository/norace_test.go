//go:build !race

package repository

const race = false

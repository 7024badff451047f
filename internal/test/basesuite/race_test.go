//go:build race

package basesuite

const race = true

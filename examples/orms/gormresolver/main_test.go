package main

import (
	"testing"

	"github.com/shardkey/shardkey/examples/internal/recipe/recipetest"
)

func TestRun(t *testing.T) { recipetest.Run(t, TestRun, run) }

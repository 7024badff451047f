// Package early uses the second reader while a program's packages are
// initialized, before package zdriver is.
package early

import "github.com/shardkey/shardkey/internal/tidb/testdata/apps/show"

func init() { show.Check() }

//go:build driverfirst

package main

import _ "github.com/pingcap/tidb/pkg/parser/test_driver"

func init() { hasDriver = true }

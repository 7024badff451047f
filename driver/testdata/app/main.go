// An application that links the driver and nothing else.
package main

import _ "github.com/shardkey/shardkey/driver"

func main() {}

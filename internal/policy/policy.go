// Package policy has the values of the rule's settings unlisted, shardGuard and explicitKeys.
package policy

const (
	Refuse = "refuse" // unlisted and shardGuard: return an error
	Warn   = "warn"   // unlisted and shardGuard: send the statement, and log a warning
	Pass   = "pass"   // unlisted: send the statement
	Off    = "off"    // shardGuard: don't check rows
	Fill   = "fill"   // explicitKeys: NULL and 0 get a key
	Keep   = "keep"   // explicitKeys: NULL and 0 are left to the server
)

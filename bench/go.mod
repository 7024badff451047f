module github.com/shardkey/shardkey/bench

go 1.26.0

require (
	github.com/bwmarrin/snowflake v0.3.0
	github.com/godruoyi/go-snowflake v0.0.2
	github.com/gofrs/uuid/v5 v5.5.1
	github.com/google/uuid v1.6.0
	github.com/oklog/ulid/v2 v2.1.2
	github.com/rs/xid v1.6.0
	github.com/shardkey/shardkey v0.0.0
	github.com/sony/sonyflake/v2 v2.2.0
)

replace github.com/shardkey/shardkey => ..

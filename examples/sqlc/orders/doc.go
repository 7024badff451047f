// Package orders is generated from query.sql and schema.sql, and isn't in the
// repository:
//
//	GOWORK=off CGO_ENABLED=0 go generate ./examples/sqlc/orders
package orders

//go:generate go tool -modfile=../../../internal/tools/go.mod sqlc generate -f ../sqlc.yaml

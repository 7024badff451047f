// Package orders is generated from query.sql and schema.sql. It isn't in the repository, so
// generate it first:
//
//	GOWORK=off CGO_ENABLED=0 go generate ./examples/sqlc/orders
package orders

//go:generate go tool -modfile=../../../internal/test/tools/go.mod sqlc generate -f ../sqlc.yaml

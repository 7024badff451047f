// Package orders is generated from query.sql and schema.sql, except for this file.
package orders

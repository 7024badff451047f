// Package rule reads sharding rules: which column of which table is filled by
// which key generator.
//
//	rules:
//	- !SHARDING
//	  tables:
//	    t_order:
//	      actualDataNodes: ds_${0..1}.t_order_${0..15}
//	      keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}
//	  defaultKeyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
//	  keyGenerators:
//	    snowflake: {type: SNOWFLAKE, props: {worker-id: 123}}
//
// [Load] reads a file, [Parse] a text, and [New] takes the same as a Go struct.
// What they return is checked completely and describes only; [Rule.Open] makes
// the [Live] rule of one connector, whose [Live.Lookup] says what an INSERT into a
// table needs.
//
// # ShardingSphere's files
//
// ShardingSphere's own YAML files load as they are:
//
//   - 5.0 to 5.5.3, as above, and 5.5.4 (keyGenerateStrategies next to the tables)
//   - 4.x (shardingRule, with a keyGenerator in each table and a
//     defaultKeyGenerator)
//
// A file of another version or of a Spring Boot application is an error that names
// the form; "shardkey init --from FILE" converts it.
//
// A file may hold several YAML documents and several sharding rules. Generators
// and worker-ID assigners are named across the whole file; a default strategy
// is for the tables (and autoTables) of its own sharding rule, where a table
// has none or leaves its column or generator out. A strategy that names no
// generator, with no default, gets a SNOWFLAKE without properties, as in
// ShardingSphere. A strategy that is written "none:" leaves its table without a
// key.
//
// # What is an error, and what a warning
//
// The keys of each object are closed lists, those of all versions together. What
// is about keys and sharding is used; what is not (data sources, auditors, other
// rules) is known and ignored. Every other key is
//
//   - an error when it looks like one about keys, by its spelling (keyGenerator_,
//     dataNodes) or by what is under it (a map with a generator's name): ignored, it
//     would leave rows without a key
//   - a warning otherwise
//
// [Rule.Warnings] returns the warnings, each with its place: unknown keys, auto
// tables whose number cannot be computed, properties that nobody reads, and
// tables that are sharded by their key modulo n with a SNOWFLAKE whose
// max-vibration-offset leaves shards nearly empty. They are logged when the rule is
// opened; "shardkey check --strict" and the DSN's shardkeyRuleWarnings=error take
// them for errors.
//
// Names of tables and columns are written as they are, without quotes, blanks at
// their ends or invisible characters, and columns without their table. Names are
// case-insensitive.
//
// # shardkey's own words
//
// Beside column in a strategy:
//
//   - explicitKeys: fill, as AUTO_INCREMENT does, or keep, as ShardingSphere does: what
//     happens to a NULL, 0, DEFAULT or empty text that a statement gives for the key
//   - batchKeys: any, or consecutive: a statement whose integer keys are not
//     consecutive is refused, unless its caller asked for each row's key
//   - unlisted: refuse, warn or pass: what happens to an INSERT into a table that the
//     rule does not list, but that looks like one of this table's; without it that is
//     the connection's shardkeyUnlisted
//   - shardGuard: refuse, warn or off: what happens to a row that does not belong to
//     the actual table that its INSERT names; refuse without it
//
// Beside shardingColumn in a databaseStrategy, tableStrategy or shardingStrategy:
//
//   - javaType: Integer, Long or String: the class that the column has in Java, on which
//     HASH_MOD and expressions depend; without it that of the value, where an integer is a
//     Long. With BigInteger and BigDecimal the sharding is not understood
//
// workerIdAssigners next to keyGenerators are what the property worker-id-assigner
// of a generator names.
//
// # Tables
//
// A table is found by its logical name and by those of its actual tables, which
// actualDataNodes lists: items separated by commas, with parts in ${…} (or
// $->{…}), each of which stands for one or more texts. Several in one item stand
// for every combination.
//
//	${0..15}  ${0..<16}  ${'a'..'c'}  ${'00'..'03'}  ${(0..7).step(2)}  ranges
//	${['a', 'b', 3]}  ${'x'}                                      lists, a text
//	${(1..12).collect{t -> t.toString().padLeft(2, '0')}}         closures: also it, (i -> …),
//	                                                              + - *, list*.method()
//	${*}                                                          any number
//	${yyyyMM}                                                     a date: yyyy yy MM dd HH mm ss - _
//
// A number with a leading zero is an error: Groovy, which ShardingSphere runs there,
// takes it for octal, and 01..12 for 1..12. Other Groovy is not run. <INTERVAL>,
// <LITERAL> and <GROOVY> in front of the items are understood. At most 1,048,576 data
// nodes are read of one table. Without actualDataNodes the logical name is the
// only one.
//
// The last two are patterns, for tables that come at run time: t_order_${*} is
// every t_order_ followed by a number, t_log_${yyyyMM} one for each month. The
// patterns and names of two tables must not meet.
//
// The actual tables of an auto table are name_0 … name_n-1, where n comes from its
// algorithm, as in ShardingSphere: MOD and HASH_MOD (sharding-count), BOUNDARY_RANGE,
// VOLUME_RANGE and AUTO_INTERVAL.
//
// Of a data node dataSource.table, the data source is left out, since it is
// nothing that a statement can name: an INSERT INTO app.t_order_3 is one into
// t_order whatever app is. A node dataSource.schema.table has a schema: a
// statement that writes a schema must write this one; so must one for a table
// without actualDataNodes whose logical name is schema.table. Two logical tables
// must not share an actual table's name, unless schemas tell them apart.
//
// A table that no rule lists is not filled. One whose name is a sharded table's
// followed by numbers or dates (t_order_16, t_order_2026_01), or that differs from
// an actual table's in its numbers only, was likely forgotten: [Live.Unlisted] finds
// it.
//
// # Sharding
//
// [Table.Sharding] says where the rows of a table belong, by the values of its
// sharding columns, as ShardingSphere computes it; or what of its strategies and
// algorithms is not understood. docs/reference/sharding.md has what is.
//
// Where keys carry the shard of another column (gene-column and gene-bits in the
// properties of any generator of int64 keys), [Table.Gene] is that shard, and strategies
// with which it does not agree are an error.
//
// # Properties
//
// A property's value is a text, as it is written, or a list of texts. In values,
// and nowhere else, ${NAME} stands for an environment variable, which must be
// set; ${NAME::default} has a default, and may be written $${NAME::default} as
// in ShardingSphere 5.5. \${ stands for the characters themselves. No error and no
// description shows what a variable held. In YAML's flow style ({a: b}) a value with
// ${…} must be in quotes.
package rule

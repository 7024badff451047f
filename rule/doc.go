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
// the live [Live] rule of one connector, whose [Live.Lookup] says what an
// INSERT into a table needs.
//
// # ShardingSphere's files
//
// ShardingSphere's own YAML files load as they are, in three forms: that of 5.0
// to 5.5.3, as above, that of 5.5.4 (keyGenerateStrategies beside the tables) and
// that of 4.x (shardingRule, with a keyGenerator in each table and a
// defaultKeyGenerator). What they say beyond keys is left alone: data sources,
// strategies, algorithms, auditors, other rules. A key that is left alone but
// looks like one about key generation with a slip in it is an error, as is
// everything unknown within the parts about key generation.
//
// A file may hold several YAML documents and several sharding rules. Generators
// and worker-id assigners are named across the whole file; a default strategy
// is for the tables (and autoTables) of its own sharding rule, where a table
// has none or leaves its column or generator out. A strategy that names no
// generator, with no default, gets a SNOWFLAKE without properties, as in
// ShardingSphere.
//
// Beside ShardingSphere's words there are two of shardkey's own. explicitKeys
// beside column says whether a NULL, 0, DEFAULT or empty text that a statement gives for
// the key is filled (fill, as AUTO_INCREMENT does) or left (keep, as
// ShardingSphere does). workerIdAssigners beside keyGenerators are what the
// property worker-id-assigner of a generator names.
//
// # Tables
//
// A table is found by its logical name and by those of its actual tables, which
// actualDataNodes lists: items with commas between them, in which ${0..15} is a
// range, ${['a','b']} a list, and several of them in one item every
// combination. $->{…} is the same as ${…}. A range whose end is written with
// leading zeros pads: ${00..15} is 00, 01, … 15. (Groovy, which ShardingSphere
// runs there, would not pad; its way of writing it,
// ${(0..15).collect{t -> t.toString().padLeft(2,'0')}}, is understood too. No
// other Groovy is, nor <INTERVAL>; <LITERAL> and <GROOVY> are.) At most 1,048,576
// data nodes are read of one table. Without actualDataNodes the logical name is the only one.
// The actual tables of an auto table are name_0 … name_n-1 when its algorithm
// has a sharding-count.
//
// Names are case-insensitive. Of a data node dataSource.table, the data source is
// left out, since it is nothing that a statement can name: an INSERT INTO
// app.t_order_3 is one into t_order whatever app is. A node
// dataSource.schema.table has a schema: a statement that writes a schema must
// write this one; so must one for a table without actualDataNodes whose logical
// name is schema.table. Two logical tables must not share an actual table's name,
// unless schemas tell them apart.
//
// # Properties
//
// A property's value is a text, as it is written, or a list of texts. In values,
// and nowhere else, ${NAME} stands for an environment variable, which must be
// set; ${NAME::default} has a default, and may be written $${NAME::default} as
// in ShardingSphere 5.5. \${ stands for the characters themselves. No error and
// no description shows what a variable held.
package rule

package snowflake

import (
	"fmt"
	"strings"

	"github.com/shardkey/shardkey/spi"
)

// Gene returns the gene of a key: its lowest bits, a number from 0 to 2^bits − 1. By it
// the key tells the shard of its row's gene column; of 2^k shards, k ≤ bits, that is
// the gene modulo 2^k. bits are the rule's gene-bits, 0..62, of which a negative
// number is 0; a key is not negative.
func Gene(key int64, bits int) int64 { return key & (1<<max(bits, 0) - 1) }

// Gene returns the column whose gene the keys carry, and in how many bits; "" and 0 when
// they carry none.
func (g *Generator) Gene() (column string, bits int) { return g.cfg.GeneColumn, g.cfg.GeneBits }

// maxGeneBits is the greatest number of gene bits that a layout can have: of each gene
// every tick has at least one key.
func (l Layout) maxGeneBits() int { return min(l.orDefault().SequenceBits, 16) }

// noRow is the error for a key that is asked for without a row.
func (g *Generator) noRow() error {
	return fmt.Errorf("shardkey: the keys of this %s carry the gene of column %s, and it was asked for keys without their rows: "+
		"have the INSERT filled, give the key in it, or use a generator without gene-column", g.typ(), g.cfg.GeneColumn)
}

func readGene(p spi.Props, cfg *Config) error {
	cfg.GeneColumn = strings.TrimSpace(p.String("gene-column", ""))
	most := cfg.Layout.maxGeneBits()
	if most == 0 && p.Has("gene-bits") {
		return p.Wrong("gene-bits", "none: the layout has no sequence that could carry a gene")
	}
	bits, err := p.Int("gene-bits", 0, 1, int64(most))
	switch {
	case err != nil:
		return err
	case cfg.GeneColumn == "" && (bits > 0 || p.Has("gene-column")):
		return p.Wrong("gene-column", "the column whose shard the keys carry, beside gene-bits")
	case cfg.GeneColumn != "" && bits == 0:
		return p.Wrong("gene-column", fmt.Sprintf("gene-bits beside it, 1 to %d: 2^gene-bits is the greatest number of shards", most))
	}
	cfg.GeneBits = int(bits)
	return nil
}

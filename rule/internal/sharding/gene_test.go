package sharding

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule/internal/expr"
)

// TestGene_vectors computes the shard bits of the vectors' columns, and compares them with the bits
// in the vectors' keys.
func TestGene_vectors(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/vectors.json"))(t)
	var file struct {
		GeneKeys []struct {
			ShardColumn       any
			Gene              int64
			GeneBits          int
			Key               string
			KeyMod, ColumnMod map[string]int64
		}
	}
	if err := json.Unmarshal(data, &file); err != nil || len(file.GeneKeys) < 20 {
		t.Fatal(len(file.GeneKeys), err)
	}
	for _, v := range file.GeneKeys {
		g := must.Get(NewShardBits("user_id", v.GeneBits, ShardBitsWay{}))(t)
		value, _ := expr.Of(v.ShardColumn)
		if n, isNumber := v.ShardColumn.(float64); isNumber {
			value = expr.OfLong(int64(n))
		}
		gene, err := g.Of(value)
		key, _ := strconv.ParseInt(v.Key, 10, 64)
		if err != nil || gene != v.Gene || key&(1<<v.GeneBits-1) != gene {
			t.Errorf("%+v\nhave: %d, %v", v, gene, err)
		}
		for text, want := range v.ColumnMod {
			if n, _ := strconv.ParseInt(text, 10, 64); n <= 1<<v.GeneBits && (gene%n != want || v.KeyMod[text] != want) {
				t.Errorf("%+v modulo %d\nhave: %d", v, n, gene%n)
			}
		}
	}
}

// TestGene_asTheAlgorithm compares the shard bits of random values with the table that the
// algorithm selects, for every number of tables that the shard bits support.
func TestGene_asTheAlgorithm(t *testing.T) {
	rnd := rand.New(rand.NewPCG(13, 3))
	for _, tt := range []struct {
		typ, prop, value string
		classes          []expr.Class
		negative         bool // negative numbers have shard bits
		texts            bool
	}{
		{"MOD", "sharding-count", "%d", []expr.Class{expr.Null, expr.Long, expr.Integer, expr.String}, true, false},
		{"HASH_MOD", "sharding-count", "%d", []expr.Class{expr.Null, expr.Long, expr.Integer, expr.String}, true, true},
		{"INLINE", "algorithm-expression", "t_${x %% %d}", []expr.Class{expr.Null, expr.Long}, false, false},
		{"INLINE", "algorithm-expression", "t_${Math.floorMod(x, %d)}", []expr.Class{expr.Null, expr.Long}, true, false},
		{"INLINE", "algorithm-expression", "t_${Math.abs(x.hashCode()) %% %d}", []expr.Class{expr.Null, expr.Long, expr.Integer, expr.String}, true, true},
		{"INLINE", "algorithm-expression", "t_${Math.abs(x.hashCode() %% %d)}", []expr.Class{expr.Null, expr.String}, true, true},
	} {
		for _, class := range tt.classes {
			for range 20 {
				bits := 1 + rnd.IntN(12)
				n := 1 << rnd.IntN(bits+1)
				props := fmt.Sprintf(tt.value, n)
				value := map[string]string{tt.prop: props}
				a := must.Get(Compile(tt.typ, value, []string{"x"}))(t)
				var targets []string
				for i := range n {
					targets = append(targets, fmt.Sprintf("t_%d", i))
				}
				s := a.Over(targets, NamingOf("t", targets), class)
				g, err := NewShardBits("x", bits, ShardBitsWay{}, s)
				if err != nil {
					t.Fatalf("%s %s, %d bits: %v", tt.typ, props, bits, err)
				}
				for range 300 {
					v := []expr.Value{expr.OfLong(rnd.Int64()), expr.OfLong(-rnd.Int64N(1 << 40)), expr.OfLong(rnd.Int64N(3000)),
						expr.OfLong(int64(int32(rnd.Uint32()))), expr.OfString(fmt.Sprint("u", rnd.IntN(9999))), expr.OfString(strconv.Itoa(rnd.IntN(9999)))}[rnd.IntN(6)]
					want, placeErr := s.Place(v)
					gene, err := g.Of(v)
					if err != nil {
						if v.IsInteger() && (v.Int64() >= 0 || tt.negative) && placeErr == nil || tt.texts && v.Class() == expr.String && placeErr == nil {
							t.Fatalf("%s %s of %v: %v", tt.typ, props, v, err)
						}
						continue
					}
					if placeErr != nil || gene < 0 || gene >= 1<<bits || int(gene)%n != want {
						t.Fatalf("%s %s of %v, %s, %d bits\nhave: gene %d\nwant: table %d, %v", tt.typ, props, v, class, bits, gene, want, placeErr)
					}
				}
			}
		}
	}
}

package main

import "fmt"

// genes returns how many of a key's lowest bits are a gene.
func (f *decodeFlags) genes(bits keyBits) (int, error) {
	switch given := f.fs.Changed("gene-bits"); {
	case given && f.rule != "":
		return 0, usagef("-rule says what -gene-bits says too: give one of the two")
	case given && (f.geneBits < 1 || f.geneBits > 16):
		return 0, usagef("-gene-bits %d is not in 1..16", f.geneBits)
	case given && f.guess:
		return 0, usagef("-guess shows no genes: leave -gene-bits out")
	case given:
		return f.geneBits, nil
	}
	with, _ := bits.(ruleBits)
	return with.geneBits, nil
}

func formatGene(gene *int64, bits int) string {
	if gene == nil {
		return "-"
	}
	return fmt.Sprintf("%d of %d", *gene, 1<<bits)
}

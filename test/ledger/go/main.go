// The independent check: whether the notes and trees of Go's checksum database (golang.org/x/mod/sumdb) agree with
// those of this program. Reads one question as JSON from standard input and writes one answer to standard output.
// Binary data is in base64. Sizes and indexes count leaves, and indexes start at 0.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type question struct {
	Check struct {
		// The known keys.
		VerifierKeys  []string      `json:"verifierKeys"`
		Notes         []string      `json:"notes"`
		Inclusions    []inclusion   `json:"inclusions"`
		Consistencies []consistency `json:"consistencies"`
	} `json:"check"`
	Make *struct {
		Origin string `json:"origin"`
		// The hashed bytes of each entry.
		Entries       [][]byte   `json:"entries"`
		Sizes         []int64    `json:"sizes"`
		Inclusions    [][2]int64 `json:"inclusions"`
		Consistencies [][2]int64 `json:"consistencies"`
	} `json:"make"`
}

// Proves that an entry has its place in the tree of a checkpoint.
type inclusion struct {
	Entry      []byte   `json:"entry"`
	Index      int64    `json:"index"`
	Checkpoint string   `json:"checkpoint"`
	Proof      [][]byte `json:"proof"`
}

// Proves that the tree of one checkpoint begins with that of another.
type consistency struct {
	Older string   `json:"older"`
	Newer string   `json:"newer"`
	Proof [][]byte `json:"proof"`
}

// For each check: "good", or the reason why not. For each request to produce something: all results, in order.
type answer struct {
	Check struct {
		Notes         []string `json:"notes"`
		Inclusions    []string `json:"inclusions"`
		Consistencies []string `json:"consistencies"`
	} `json:"check"`
	Make struct {
		VerifierKey   string        `json:"verifierKey"`
		Checkpoints   []string      `json:"checkpoints"`
		Inclusions    [][]tlog.Hash `json:"inclusions"`
		Consistencies [][]tlog.Hash `json:"consistencies"`
	} `json:"make"`
}

func main() {
	var asked question
	var told answer
	err := json.NewDecoder(os.Stdin).Decode(&asked)
	if err == nil {
		err = check(asked, &told)
	}
	if err == nil && asked.Make != nil {
		err = prove(asked, &told)
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(told)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(asked question, told *answer) error {
	var verifiers []note.Verifier
	for _, key := range asked.Check.VerifierKeys {
		verifier, err := note.NewVerifier(key)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		verifiers = append(verifiers, verifier)
	}
	known := note.VerifierList(verifiers...)
	for _, text := range asked.Check.Notes {
		_, err := note.Open([]byte(text), known)
		told.Check.Notes = append(told.Check.Notes, verdict(err))
	}
	for _, each := range asked.Check.Inclusions {
		told.Check.Inclusions = append(told.Check.Inclusions, verdict(checkInclusion(each, known)))
	}
	for _, each := range asked.Check.Consistencies {
		told.Check.Consistencies = append(told.Check.Consistencies, verdict(checkConsistency(each, known)))
	}
	return nil
}

func checkInclusion(given inclusion, known note.Verifiers) error {
	tree, err := open(given.Checkpoint, known)
	if err != nil {
		return err
	}
	proof, err := hashes(given.Proof)
	if err != nil {
		return err
	}
	return tlog.CheckRecord(proof, tree.N, tree.Hash, given.Index, tlog.RecordHash(given.Entry))
}

func checkConsistency(given consistency, known note.Verifiers) error {
	older, err := open(given.Older, known)
	if err != nil {
		return err
	}
	newer, err := open(given.Newer, known)
	if err != nil {
		return err
	}
	proof, err := hashes(given.Proof)
	if err != nil {
		return err
	}
	return tlog.CheckTree(proof, newer.N, newer.Hash, older.N, older.Hash)
}

func hashes(given [][]byte) ([]tlog.Hash, error) {
	var found []tlog.Hash
	for _, each := range given {
		if len(each) != tlog.HashSize {
			return nil, errors.New("no hash")
		}
		found = append(found, *(*tlog.Hash)(each))
	}
	return found, nil
}

func verdict(err error) string {
	var unsigned *note.UnverifiedNoteError
	switch {
	case err == nil:
		return "good"
	case errors.As(err, &unsigned):
		return "unsigned"
	default:
		return "refused"
	}
}

// Opens a checkpoint (c2sp.org/tlog-checkpoint). tlog.ParseTree reads only that of Go's own database.
func open(text string, known note.Verifiers) (tlog.Tree, error) {
	opened, err := note.Open([]byte(text), known)
	if err != nil {
		return tlog.Tree{}, err
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) < 4 {
		return tlog.Tree{}, errors.New("no checkpoint")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return tlog.Tree{}, err
	}
	hash, err := tlog.ParseHash(lines[2])
	return tlog.Tree{N: size, Hash: hash}, err
}

func prove(asked question, told *answer) error {
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		found := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			found[i] = stored[index]
		}
		return found, nil
	})
	for i, entry := range asked.Make.Entries {
		hashes, err := tlog.StoredHashes(int64(i), entry, reader)
		if err != nil {
			return err
		}
		stored = append(stored, hashes...)
	}
	secret, verifierKey, err := note.GenerateKey(rand.Reader, asked.Make.Origin)
	if err != nil {
		return err
	}
	signer, err := note.NewSigner(secret)
	if err != nil {
		return err
	}
	told.Make.VerifierKey = verifierKey
	for _, size := range asked.Make.Sizes {
		root, err := tlog.TreeHash(size, reader)
		if err != nil {
			return err
		}
		var text bytes.Buffer
		fmt.Fprintf(&text, "%s\n%d\n%s\n", asked.Make.Origin, size, base64.StdEncoding.EncodeToString(root[:]))
		signed, err := note.Sign(&note.Note{Text: text.String()}, signer)
		if err != nil {
			return err
		}
		told.Make.Checkpoints = append(told.Make.Checkpoints, string(signed))
	}
	for _, each := range asked.Make.Inclusions {
		proof, err := tlog.ProveRecord(each[1], each[0], reader)
		if err != nil {
			return err
		}
		told.Make.Inclusions = append(told.Make.Inclusions, proof)
	}
	for _, each := range asked.Make.Consistencies {
		proof, err := tlog.ProveTree(each[1], each[0], reader)
		if err != nil {
			return err
		}
		told.Make.Consistencies = append(told.Make.Consistencies, proof)
	}
	return nil
}

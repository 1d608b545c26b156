package integration

import (
	"encoding/json"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Ledger is an input of entries with unique ids over a number of accounts. Entry i depends on nothing but i and the seed.
type Ledger struct {
	Entries, Accounts int
	Seed              uint64
}

// Entry is one posting to an account.
type Entry struct {
	ID      string `json:"id"`
	Account string `json:"account"`
	Amount  int64  `json:"amount"`
}

// Entry gives number i.
func (l Ledger) Entry(i int) Entry {
	h := mix(l.Seed + uint64(i))
	return Entry{
		ID:      fmt.Sprintf("e-%010d", i),
		Account: fmt.Sprintf("account-%06d", (h&0xffffffff)%uint64(l.Accounts)),
		Amount:  int64((h>>32)%2001) - 1000,
	}
}

// Record is entry i as a record, keyed by its account: all entries of an account lie in one partition, in order.
func (l Ledger) Record(i int) *kgo.Record {
	e := l.Entry(i)
	return &kgo.Record{
		Key:   []byte(e.Account),
		Value: fmt.Appendf(nil, `{"id":"%s","account":"%s","amount":%d}`, e.ID, e.Account, e.Amount),
	}
}

// History folds the entries one after the other.
func (l Ledger) History() History {
	history := make(History, l.Accounts)
	for i := range l.Entries {
		history.post(l.Entry(i))
	}
	return history
}

func (h History) post(e Entry) {
	steps := h[e.Account]
	next := Step{N: 1, Sum: e.Amount, Last: e.ID}
	if len(steps) > 0 {
		next.N += steps[len(steps)-1].N
		next.Sum += steps[len(steps)-1].Sum
	}
	h[e.Account] = append(steps, next)
}

// DecodeBalance reads a record of the ledger's output.
func DecodeBalance(r *kgo.Record) (string, Step, error) {
	var row struct {
		Account *string `json:"account"`
		N       *int64  `json:"n"`
		Balance *int64  `json:"balance"`
		LastID  *string `json:"last_id"`
	}
	if err := json.Unmarshal(r.Value, &row); err != nil {
		return "", Step{}, fmt.Errorf("balance %q: %w", r.Value, err)
	}
	if row.Account == nil || row.N == nil || row.Balance == nil || row.LastID == nil || *row.Account != string(r.Key) {
		return "", Step{}, fmt.Errorf("balance %q under key %q: incomplete, or of another account", r.Value, r.Key)
	}
	return *row.Account, Step{N: *row.N, Sum: *row.Balance, Last: *row.LastID}, nil
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

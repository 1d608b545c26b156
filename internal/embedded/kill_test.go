package embedded

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	childFolder = "EMBEDDED_TEST_CHILD_FOLDER"
	childFirst  = "EMBEDDED_TEST_CHILD_FIRST"
	killTopic   = "ledger"
	killParts   = 6
)

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child runs the broker and commits transaction after transaction: number n as one record in each partition, and as group offset.
// It prints a number once its commit is acknowledged, and leaves each third transaction open in between under another id.
func child(dir string) error {
	first, err := strconv.Atoi(os.Getenv(childFirst))
	if err != nil {
		return err
	}
	b, err := Start(dir, Options{Listen: "127.0.0.1:0"})
	if err != nil {
		return err
	}
	ctx := context.Background()
	open := func(id string) (*kgo.Client, error) {
		return kgo.NewClient(kgo.SeedBrokers(b.Addresses()...), kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	cl, err := open("writer")
	if err != nil {
		return err
	}
	straggler, err := open("straggler")
	if err != nil {
		return err
	}
	if err := straggler.BeginTransaction(); err != nil {
		return err
	}
	send := func(c *kgo.Client, n int) error {
		var records []*kgo.Record
		for p := range killParts {
			records = append(records, &kgo.Record{Topic: killTopic, Partition: int32(p), Value: []byte(strconv.Itoa(n))})
		}
		return c.ProduceSync(ctx, records...).FirstErr()
	}
	adm := kadm.NewClient(cl)
	if _, err := adm.CreateTopic(ctx, killParts, 1, nil, killTopic); err != nil && first == 0 {
		return err
	}
	for n := first; ; n++ {
		if n == first {
			if err := send(straggler, -1); err != nil {
				return err
			}
		}
		if err := transaction(ctx, cl, n, send); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

func transaction(ctx context.Context, cl *kgo.Client, n int, send func(*kgo.Client, int) error) error {
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	if err := send(cl, n); err != nil {
		return err
	}
	pid, epoch, err := cl.ProducerID(ctx)
	if err != nil {
		return err
	}
	if err := commitOffset(ctx, cl, "writer", "readers", pid, epoch, int64(n)); err != nil {
		return err
	}
	return cl.EndTransaction(ctx, kgo.TryCommit)
}

// killed starts a child whose first transaction is number first, kills it after some acknowledged ones, and returns the last of these.
func killed(t *testing.T, dir string, first, after int) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childFolder+"="+dir, childFirst+"="+strconv.Itoa(first))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last := first - 1
	s := bufio.NewScanner(out)
	for s.Scan() {
		n, err := strconv.Atoi(s.Text())
		if err != nil {
			t.Errorf("child printed %q", s.Text())
			break
		}
		if last = n; n-first == after {
			cmd.Process.Kill()
		}
	}
	_ = cmd.Wait() // killed
	if last < first {
		t.Fatal("child committed nothing")
	}
	return last
}

func TestKilledBrokerKeepsEachTransactionWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	next := 0
	for round := range 8 {
		last := killed(t, dir, next, 5+37*round)
		b, err := Start(dir, Options{Listen: "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		seen := visible(t, b)
		// The one under way when the kill came may be there too.
		end := last + 1
		if len(seen[0]) > end {
			end++
		}
		for p, numbers := range seen {
			if len(numbers) != end {
				t.Fatalf("round %d: partition %d shows %d transactions, partition 0 %d, acknowledged are %d", round, p, len(numbers), len(seen[0]), last+1)
			}
			for i, n := range numbers {
				if n != i {
					t.Fatalf("round %d: partition %d has %d in place of %d", round, p, n, i)
				}
			}
		}
		if at := groupOffset(t, b); at != int64(end-1) {
			t.Fatalf("round %d: group offset %d does not belong to the last visible transaction %d", round, at, end-1)
		}
		if round%3 == 2 { // else the child of the next round finds the folder of a broker that ended cleanly
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		} else {
			abandon(t, b)
		}
		next = end
	}
}

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// shared is what the tests of one process have in common: one Kafka and one binary, made when first asked for.
var shared environment

type environment struct {
	root, folder string

	kafkaOnce sync.Once
	kafka     *KafkaServer
	kafkaErr  error

	binaryOnce sync.Once
	binary     string
	binaryErr  error
}

func TestMain(m *testing.M) {
	status, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration tests:", err)
		status = 1
	}
	os.Exit(status)
}

func runTests(m *testing.M) (status int, err error) {
	if shared.root, err = RepositoryRoot(); err != nil {
		return 1, err
	}
	if shared.folder, err = os.MkdirTemp("", "integration-"); err != nil {
		return 1, err
	}
	defer func() {
		if shared.kafka != nil {
			err = errors.Join(err, shared.kafka.Close())
		}
		err = errors.Join(err, os.RemoveAll(shared.folder))
	}()
	return m.Run(), nil
}

// theKafka is the shared server. Without one the test is skipped, but fails where CI is set: there everything is to be tested.
func theKafka(t *testing.T) *KafkaServer {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped by -short: needs a real Kafka")
	}
	shared.kafkaOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		shared.kafka, shared.kafkaErr = OpenKafka(ctx, shared.root)
	})
	needKafka(t, shared.kafkaErr)
	return shared.kafka
}

func needKafka(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, ErrNoKafka) && os.Getenv("CI") == "" {
		t.Skip("skipped: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// theBinary is the processor, built once.
func theBinary(t *testing.T) string {
	t.Helper()
	shared.binaryOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		shared.binary, shared.binaryErr = BuildProcessor(ctx, shared.root, shared.folder)
	})
	if shared.binaryErr != nil {
		t.Fatal(shared.binaryErr)
	}
	return shared.binary
}

// within gives a context that ends after d, or with the test.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// number is a length of a test from the environment.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is not a positive number", name, text)
	}
	return n
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

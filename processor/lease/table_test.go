package lease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Every code that the client library knows stands in the table, so that a new library version fails here first.
func TestTableHasEveryCode(t *testing.T) {
	t.Parallel()
	n := 0
	for code := -1; code <= 1000; code++ {
		if code == 0 {
			continue
		}
		var e *kerr.Error
		if errors.As(kerr.ErrorForCode(int16(code)), &e); e.Code != int16(code) || e == kerr.UnknownServerError && code != -1 {
			continue
		}
		n++
		if _, ok := codes[e]; !ok {
			t.Errorf("%s (%d) has no verdict", e.Message, code)
		}
	}
	if n != len(codes) || n < 130 {
		t.Errorf("%d codes known, %d in the table", n, len(codes))
	}
	for g := moving; g < groups; g++ {
		if groupReasons[g] == "" {
			t.Errorf("group %d has no reason", g)
		}
		for step, v := range verdicts[g] {
			if v == OK || v > Fatal {
				t.Errorf("group %d has no verdict at %s", g, Step(step))
			}
		}
	}
}

// What a real broker answers to a fenced producer, to an expired transaction, and to a broken connection.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		step Step
		want Verdict
	}{
		{nil, StepEnd, OK},
		{kerr.InvalidProducerEpoch, StepProduce, Fenced},
		{kerr.InvalidProducerEpoch, StepOffsets, Fenced},
		{kerr.ProducerFenced, StepInit, Fenced},
		{kerr.ProducerFenced, StepOffsets, Fenced},
		{kerr.InvalidProducerIDMapping, StepProduce, Fenced},
		{kerr.UnknownProducerID, StepProduce, Fenced},
		{kerr.OutOfOrderSequenceNumber, StepProduce, Fenced},
		{kerr.TransactionAbortable, StepProduce, Fenced},
		{kerr.ConcurrentTransactions, StepInit, Retry},
		{kerr.ConcurrentTransactions, StepOffsets, Retry},
		{kerr.CoordinatorLoadInProgress, StepInit, Retry},
		{kerr.NotLeaderForPartition, StepRead, Retry},
		{kerr.MessageTooLarge, StepProduce, Refused},
		{kerr.TopicAuthorizationFailed, StepProduce, Fatal},
		{kerr.TransactionalIDAuthorizationFailed, StepInit, Fatal},
		{kerr.SaslAuthenticationFailed, StepRead, Fatal},
		{kerr.InvalidTxnState, StepEnd, Fenced},
		{kerr.OperationNotAttempted, StepEnd, Fenced},
		{kerr.ProducerFenced, StepEnd, Unknown},
		{kerr.RequestTimedOut, StepEnd, Unknown},
		{kerr.ConcurrentTransactions, StepEnd, Unknown},
		{context.Canceled, StepEnd, Unknown},
		{context.DeadlineExceeded, StepEnd, Unknown},
		{io.ErrUnexpectedEOF, StepEnd, Unknown},
		{io.ErrUnexpectedEOF, StepRead, Retry},
		{io.ErrUnexpectedEOF, StepProduce, Fenced},
		{&kerr.Error{Message: "NEW", Code: 999}, StepInit, Fatal},
	} {
		for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
			if c.err == nil && err != nil {
				continue
			}
			if got, why := Explain(err, c.step); got != c.want || (why == "") != (got == OK) {
				t.Errorf("%v at %s: %s (%s), want %s", err, c.step, got, why, c.want)
			}
		}
	}
}

// Neither a produce nor an EndTxn is ever repeated by the caller: the client has done so, and asked again it would tell lies.
func TestProduceAndEndAreNeverRepeated(t *testing.T) {
	t.Parallel()
	for e := range codes {
		for _, step := range []Step{StepProduce, StepEnd} {
			if v := Classify(e, step); v == Retry || v == OK {
				t.Errorf("%s at %s: %s", e.Message, step, v)
			}
		}
	}
}

package processor

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// fate is what becomes of a request on the wire.
type fate uint8

const (
	pass    fate = iota
	refuse       // it never arrives, and the connection breaks
	swallow      // it is carried out, its answer is lost, and the connection breaks
)

var errCut = errors.New("the wire is cut")

// wire is one worker's connections to the brokers. A test cuts it, which is a crash as the cluster sees it, or decides about single
// requests.
type wire struct {
	mu    sync.Mutex
	isCut bool
	rule  func(key int16, frame []byte) fate
	conns map[*wireConn]struct{}
}

func newWire() *wire { return &wire{conns: map[*wireConn]struct{}{}} }

func (w *wire) dial(ctx context.Context, network, host string) (net.Conn, error) {
	w.mu.Lock()
	cut := w.isCut
	w.mu.Unlock()
	if cut {
		return nil, errCut
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, host)
	if err != nil {
		return nil, err
	}
	wc := &wireConn{Conn: c, wire: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[wc] = struct{}{}
	return wc, nil
}

// cut breaks all connections and refuses new ones until mend.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = true
	for c := range w.conns {
		_ = c.Conn.Close()
	}
	clear(w.conns)
}

func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = false
}

// decide sets the rule for requests; nil lets all pass.
func (w *wire) decide(rule func(key int16, frame []byte) fate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rule = rule
}

type wireConn struct {
	net.Conn
	wire    *wire
	swallow atomic.Bool
}

// Write takes one whole request: the client writes each in one call.
func (c *wireConn) Write(b []byte) (int, error) {
	c.wire.mu.Lock()
	rule := c.wire.rule
	c.wire.mu.Unlock()
	if rule != nil && len(b) >= 6 {
		switch rule(int16(binary.BigEndian.Uint16(b[4:])), b) {
		case refuse:
			_ = c.Close()
			return 0, errCut
		case swallow:
			c.swallow.Store(true)
		}
	}
	return c.Conn.Write(b)
}

// Read loses the answer of a swallowed request, after it has come.
func (c *wireConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.swallow.Load() && n > 0 {
		_ = c.Close()
		return 0, errCut
	}
	return n, err
}

func (c *wireConn) Close() error {
	c.wire.mu.Lock()
	delete(c.wire.conns, c)
	c.wire.mu.Unlock()
	return c.Conn.Close()
}

package processor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Serve answers /healthz, /readyz, /metrics and /api/status on a loopback address until ctx ends. Beyond loopback it refuses to
// listen.
func (m *Metrics) Serve(ctx context.Context, address string) (actual string, wait func(), err error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", nil, fmt.Errorf("--http %s: %w", address, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", nil, fmt.Errorf("--http %s: only loopback addresses are served without authentication; use 127.0.0.1 and a proxy in front", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("--http %s: %w", address, err)
	}
	s := &http.Server{Handler: m.handler(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			return
		}
	}()
	stop := context.AfterFunc(ctx, func() {
		down, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Shutdown(down)
	})
	return l.Addr().String(), func() { stop(); _ = s.Close(); <-ended }, nil
}

func (m *Metrics) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprintln(rw, "ok") })
	mux.HandleFunc("GET /readyz", func(rw http.ResponseWriter, _ *http.Request) {
		ok, why := false, "starting"
		if w := m.worker.Load(); w != nil {
			ok, why = w.Ready()
		}
		if !ok {
			rw.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(rw, why)
			return
		}
		fmt.Fprintln(rw, "ready")
	})
	mux.HandleFunc("GET /api/status", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		out := struct {
			Worker string      `json:"worker"`
			Jobs   []JobStatus `json:"jobs"`
		}{}
		if w := m.worker.Load(); w != nil {
			out.Worker, out.Jobs = w.name, w.Jobs()
		}
		_ = json.NewEncoder(rw).Encode(out)
	})
	return mux
}

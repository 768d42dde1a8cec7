// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	manager "github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/cmd/gleamd/command"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/config/trusted"
	"github.com/gleam-rdma/gleam/internal/confine/privilege"
	"github.com/gleam-rdma/gleam/internal/control"
	"github.com/gleam-rdma/gleam/internal/doctor"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
)

// engine is what gleamd runs: control.Engine, or a fake in tests.
type engine interface {
	backend
	Run(context.Context) error
	Reconfigure(now, next *config.Config, force bool) (control.Lost, error)
	Progress(context.Context) error
	Close() error
}

// backend is what the API, the live page and the metrics are made of.
type backend interface {
	api.Backend
	BusiestGroups(n int) (list []api.Group, leftOut int, err error)
}

// daemon is gleamd with what it touches of the world.
type daemon struct {
	stdout, stderr io.Writer
	journal        sendJournal // nil: stderr does not go there
	open           func(*config.Config, control.Notify) (engine, error)
	inspect        func(*config.Config, *doctor.Running) []checks.Finding // findings of --check
	identify       func(want string) (privilege.Identity, error)          // the user to become
	confine        func(privilege.Identity) error                         // limit of the process to what a running switch needs
	hangup         <-chan os.Signal                                       // SIGHUP, which must not end the switch
}

// main executes args and returns the exit code.
func (d *daemon) main(ctx context.Context, args []string) int {
	build := api.Build(time.Now())
	c := command.Gleamd(build.Text(), d.check, d.run)
	c.SetOut(d.stdout)
	c.SetErr(d.stderr)
	c.SetArgs(args)
	err := c.ExecuteContext(ctx)
	var usage command.UsageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(d.stderr, "gleamd: %s\nSee 'gleamd --help'.\n", err)
		return 2
	}
	d.printError(err)
	return 1
}

// printError prints one line for each thing that is wrong: config.Errors and
// errors.Join put every error in a line of its own.
func (d *daemon) printError(err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(d.stderr, "gleamd: %s\n", line)
	}
}

// check is gleamd --check.
func (d *daemon) check(file string) error {
	cfg, err := config.Load(file)
	if err != nil {
		return err
	}
	var errs []error
	warnings := 0
	running := doctor.FindRunning(context.Background(), cfg)
	if running != nil {
		fmt.Fprintf(d.stdout, "%s: gleamd %s runs with this API socket (process %d): its XDP programs at the ports are no findings\n", file, running.Version, running.Pid)
	}
	for _, f := range d.inspect(cfg, running) {
		if f.Fatal {
			errs = append(errs, errors.New(f.String()))
			continue
		}
		if f.Note {
			fmt.Fprintf(d.stderr, "gleamd: note: %s\n", f)
			continue
		}
		warnings++
		fmt.Fprintf(d.stderr, "gleamd: warning: %s\n", f)
	}
	switch {
	case len(errs) > 0:
		return errors.Join(errs...)
	case warnings > 0:
		fmt.Fprintf(d.stdout, "%s: ok, see the warnings\n", file)
	default:
		fmt.Fprintf(d.stdout, "%s: ok\n", file)
	}
	return nil
}

// run is gleamd itself. The socket comes first: if another gleamd has it, that
// one has the ports as well, and its switch is left alone. Clients that connect
// before the switch is ready wait in the socket's backlog.
func (d *daemon) run(ctx context.Context, file string) (err error) {
	started, files := time.Now(), &trusted.Files{}
	cfg, err := config.LoadBy(file, files)
	if err != nil {
		return err
	}
	id, err := d.identify(cfg.User)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	log := newLogger(cfg.Log, d.stderr, d.journal)
	defer zap.RedirectStdLog(log)() // net/http's own complaints
	ln, err := api.Listen(cfg.API.Socket, cfg.API.Mode)
	if err != nil {
		if errors.Is(err, api.ErrSocketInUse) {
			return fmt.Errorf("%w (key api.socket in %s)", err, file)
		}
		return err
	}
	defer ln.Close()
	access, said, err := openTo(ln, id, &cfg.API)
	if err != nil {
		return err
	}
	remote, err := listenRemote(ctx, &cfg.API, log)
	if err != nil {
		return err
	}
	defer remote.close()
	page, err := listenWeb(ctx, &cfg.Web, log)
	if err != nil {
		return err
	}
	defer page.close()
	scraping, err := listenMetrics(ctx, &cfg.Metrics, log)
	if err != nil {
		return err
	}
	defer scraping.close()
	build := api.Build(started)
	log.Info("gleamd starts", zap.String("version", build.Version), zap.String("commit", build.Commit), zap.String("go", build.Go), zap.String("platform", build.Platform), zap.String("config", file), zap.Int("pid", build.Pid), zap.Stringer("user", id))
	for _, s := range said {
		log.Info(s, zap.String("socket", cfg.API.Socket))
	}
	if cfg.Envelope.Insecure {
		log.Warn("envelope.insecure is set: whoever reaches a port can register and delete groups")
	}
	sugar := log.Sugar()
	audit := newLogger(config.Log{Level: config.LogInfo, Format: cfg.Log.Format}, d.stderr, d.journal).Sugar() // at any level
	eng, err := d.open(cfg, func(warn bool, msg string, kv ...any) {
		if msg == control.AuditMark {
			audit.Infow(msg, kv...)
		} else if msg == control.PhaseMark {
			sugar.Debugw(msg, append(kv, "since_start", time.Since(started).Round(time.Microsecond).String())...)
		} else if warn {
			sugar.Warnw(msg, kv...)
		} else {
			sugar.Infow(msg, kv...)
		}
	})
	if err != nil {
		return err
	}
	if err = d.confine(id); err == nil {
		if !ln.Removable() {
			log.Info("the socket stays behind when gleamd ends, and the next one replaces it: its directory belongs to somebody else", zap.String("socket", cfg.API.Socket))
		}
		again := &reloader{file: file, files: files, start: cfg, running: cfg, eng: eng, remote: remote, log: log}
		err = d.serve(ctx, &reloadable{backend: eng, reload: again.reload, remote: remote, page: page, scraping: scraping}, eng, ln, build, access, log)
	}
	if closing := eng.Close(); closing != nil {
		err = errors.Join(err, fmt.Errorf("give the ports back to the kernel: %w", closing))
	}
	if err == nil {
		log.Info("gleamd ends, the ports are the kernel's again")
	}
	return err
}

// serve runs the switch and its API until ctx ends or one of them fails.
func (d *daemon) serve(ctx context.Context, b *reloadable, eng engine, ln net.Listener, build api.Version, access api.Access, log *zap.Logger) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var runErr, apiErr, remoteErr error
	b.scraping.of(b, build)
	wg.Go(func() {
		runErr = eng.Run(ctx)
		if runErr == nil && ctx.Err() == nil {
			runErr = errors.New("the switch stopped by itself")
		}
		cancel(nil)
	})
	wg.Go(func() {
		apiErr = api.Serve(ctx, ln, b, build, access)
		cancel(nil)
	})
	if b.remote != nil {
		wg.Go(func() {
			remoteErr = b.remote.api.Serve(ctx, b.remote.ln, b, build)
			cancel(nil)
		})
	}
	wg.Go(func() { b.page.serve(ctx, b, build) })
	wg.Go(func() { b.scraping.serve(ctx) })
	log.Info("gleamd is ready", zap.Stringer("socket", ln.Addr()))
	if err := notify(manager.SdNotifyReady); err != nil {
		log.Warn("the service manager was not told that gleamd is ready", zap.Error(err))
	}
	wg.Go(func() { d.feedWatchdog(ctx, eng, log) })
	d.hear(ctx, log, b)
	if err := notify(manager.SdNotifyStopping); err != nil {
		log.Debug("the service manager was not told that gleamd stops", zap.Error(err))
	}
	wg.Wait()
	return errors.Join(runErr, apiErr, remoteErr)
}

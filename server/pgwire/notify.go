package pgwire

import (
	"errors"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// notifications adds what has arrived for the session.
func (c *conn) notifications() (any bool) {
	for _, n := range c.session.TakeNotifications() {
		any = true
		c.out.send(&pgproto3.NotificationResponse{PID: uint32(n.PID), Channel: n.Channel, Payload: n.Payload})
	}
	return any
}

// notified wakes the connection if it waits for its client; one that is at work
// looks for notifications before it waits again.
func (c *conn) notified() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started && !c.busy {
		c.woken = true
		_ = c.nc.SetReadDeadline(time.Now())
	}
}

// idle waits for the first byte of a message and delivers notifications
// meanwhile. A wait can be broken off without loss only there, between messages.
func (c *conn) idle() error {
	for !c.pending {
		if c.notifications() {
			if err := c.out.flush(); err != nil {
				return err
			}
		}
		err := c.in.wait()
		if c.awake(err == nil); err == nil {
			return nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || c.leaving() {
			return err
		}
	}
	return nil
}

// awake takes back the deadline by which notified woke the connection. If a
// message has come, nothing may interrupt its reading from now on.
func (c *conn) awake(message bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = c.busy || message
	if c.woken && !c.draining {
		_ = c.nc.SetReadDeadline(time.Time{})
	}
	c.woken = false
}

// leaving tells that it was the shutdown that ended a wait.
func (c *conn) leaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.draining
}

package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tallystick/tallystick/client"
	"github.com/tallystick/tallystick/identity"
)

// A call is signed with alice's key, tried again while it loses conflicts, and
// returns when it has committed.
func ExampleClient_Call() {
	key, err := identity.LoadKey("net/bank/users/alice/key.pem")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	c, err := client.Connect(ctx, client.Config{
		Nodes: []string{"postgres://alice@node1.bank:5432/tallystick", "postgres://alice@node2.bank:5432/tallystick"},
		User:  identity.UserID{Org: "bank", Name: "alice"},
		Key:   key,
		Wait:  client.WaitMajority,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	result, err := c.Call(ctx, "transfer", "a", "b", "12.50")
	if err != nil {
		log.Fatal(err)
	}
	var left string
	if err := result.Scan(&left); err != nil {
		log.Fatal(err)
	}
	fmt.Println("left:", left)
}

// Whoever keeps the height up to which they have come misses nothing.
func ExampleClient_Subscribe() {
	var c *client.Client // from Connect
	err := c.Subscribe(context.Background(), 1, func(e client.Entry) error {
		fmt.Println(e.Block, e.Position, e.User, e.Call, e.Status)
		return nil
	})
	log.Fatal(err)
}

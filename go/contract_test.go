package drayhorse_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/drayhorse/drayhorse/go"
)

func TestContracts(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	contract := drayhorse.Contract{
		Type: "charge", Version: "3", MaxAttempts: 4, TimeoutMs: 5000, Actor: "ops",
		InputSchema: json.RawMessage(`{"type":"object","required":["amount"],"properties":{"amount":{"type":"integer"}}}`),
		RetryPolicy: map[string]any{"type": "standard"},
	}
	first, err := queue.Contracts.Publish(ctx, contract)
	if err != nil && strings.Contains(err.Error(), "there is no verb") {
		t.Skip("the linked core has no contracts")
	}
	if err != nil {
		t.Fatal(err)
	}
	again := must[drayhorse.PublishedContract](t)(queue.Contracts.Publish(ctx, contract))
	if first.Replayed || !again.Replayed || first.Digest != again.Digest || first.Digest == "" {
		t.Errorf("%+v, then %+v", first, again)
	}
	contract.MaxAttempts = 5
	_, err = queue.Contracts.Publish(ctx, contract)
	expectCode(t, err, drayhorse.ErrContractConflict)
	held := must[*drayhorse.PublishedContract](t)(queue.Contracts.Get(ctx, drayhorse.Handler{Type: "charge", Version: "3"}))
	if held == nil || held.MaxAttempts != 4 || held.TimeoutMs != 5000 {
		t.Errorf("%+v", held)
	}
	if none := must[*drayhorse.PublishedContract](t)(queue.Contracts.Get(ctx, drayhorse.Handler{Type: "charge"})); none != nil {
		t.Errorf("%+v", none)
	}
	if list := must[[]drayhorse.PublishedContract](t)(queue.Contracts.List(ctx, drayhorse.Handler{Type: "charge", Version: "3"})); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}

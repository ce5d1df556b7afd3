import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BodyBudget } from './body-budget.ts';

test('one owner takes half at most, and the next still finds a part', () => {
  const budget = new BodyBudget(120);
  const fill = (owner: string): number => {
    let taken = 0;
    while (budget.take(owner, 1) === 'granted') taken++;
    return taken;
  };
  assert.equal(fill('a'), 60);
  assert.equal(budget.take('a', 1), 'owner-full');
  assert.equal(fill('b'), 30);
  assert.equal(fill('c'), 15);
  assert.equal(budget.take('d', 16), 'full');
  budget.give('a', 60);
  assert.equal(budget.used, 45);
  assert.equal(budget.take('b', 10), 'granted');
});

test('a body is taken whole or not at all, and what is given back is free again', () => {
  const budget = new BodyBudget(10);
  assert.equal(budget.take('a', 11), 'full');
  assert.equal(budget.take('a', 10), 'granted');
  assert.equal(budget.take('b', 1), 'full');
  budget.give('a', 10);
  assert.equal(budget.used, 0);
  assert.equal(budget.take('b', 10), 'granted');
});

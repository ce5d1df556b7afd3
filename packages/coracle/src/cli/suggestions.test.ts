import assert from 'node:assert/strict';
import { test } from 'node:test';
import { didYouMean, nearest } from './suggestions.ts';

test('the nearest name is suggested, and none that is another word', () => {
  const names = ['create', 'start', 'status', 'stop', 'list'];
  assert.equal(nearest('statr', names), 'start');
  assert.equal(nearest('staus', names), 'status');
  assert.equal(nearest('craete', names), 'create');
  assert.equal(nearest('lst', names), 'list');
  assert.equal(nearest('ls', names), undefined);
  assert.equal(nearest('destroy', names), undefined);
  assert.equal(nearest('cre', names), 'create');
  assert.equal(nearest('memo', ['memory-dump', 'memory-state']), undefined);
  assert.equal(nearest('', names), undefined);
  assert.equal(didYouMean('sotp', names), '; did you mean stop?');
  assert.equal(didYouMean('nothing', names), '');
});

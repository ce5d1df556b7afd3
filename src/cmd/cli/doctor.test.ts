import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kvmRemedy } from './doctor.ts';

test('kvmRemedy() names the obstacle that there is, and no other', () => {
  for (const [exists, opens, says, never] of [
    [false, false, /enable virtualisation in the firmware/, /usermod/],
    [true, false, /usermod -aG kvm/, /firmware|nested/],
    [true, true, /nested virtualisation on its host.*permissions are not the trouble/, /usermod/],
  ] as const) {
    const text = kvmRemedy({ exists, opens });
    assert.match(text, says);
    assert.doesNotMatch(text, never);
  }
});

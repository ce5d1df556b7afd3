import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kvmRemedy } from './doctor.ts';

// S-367: `doctor` names the obstacle that KVM has on this host, and looks at UEFI firmware, kubectl and low ports.
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

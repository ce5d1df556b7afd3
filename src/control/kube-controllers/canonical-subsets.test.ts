import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalSubsets } from './canonical-subsets.ts';

test('ports that offer the same addresses share a subset, and an address not ready in one place is in none', () => {
  const [a, b] = [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }];
  const ports = (...numbers: number[]) => numbers.map((port) => ({ port }));
  assert.deepEqual(
    canonicalSubsets([
      { addresses: [a, b], ports: ports(1) },
      { addresses: [a], notReadyAddresses: [b], ports: ports(1, 2) },
      { addresses: [b] },
    ]),
    [
      { addresses: [a], notReadyAddresses: [b], ports: ports(1, 2) },
      { addresses: [b], notReadyAddresses: [], ports: [] },
    ],
  );
});

test('subsets of more pairs than anybody writes stay as they were cut', () => {
  const subset = {
    addresses: Array.from({ length: 60_000 }, (_, i) => ({ ip: `10.0.${i >> 8}.${i & 255}` })),
    ports: Array.from({ length: 60_000 }, (_, i) => ({ port: i + 1 })),
  };
  // Each port with each address would not fit into memory.
  assert.deepEqual(canonicalSubsets([subset, subset]), [subset, subset]);
});

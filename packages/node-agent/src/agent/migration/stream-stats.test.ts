import assert from 'node:assert/strict';
import { test } from 'node:test';
import { streamMetrics, streamStats } from './stream-stats.ts';

test('streamStats() adds memory and disks; streamMetrics() has upstream names', () => {
  assert.equal(streamStats({}, []), undefined);
  const ram = {
    transferred: 100,
    remaining: 50,
    total: 1000,
    mbps: 80,
    'dirty-pages-rate': 3,
    'page-size': 4096,
  };
  const figures = streamStats({ ram }, [{ len: 200, offset: 150 }])!;
  assert.deepEqual(figures, {
    total: 1200,
    processed: 250,
    remaining: 100,
    dirtyRate: 12_288,
    transferRate: 10_000_000,
  });
  assert.equal(streamStats({}, [{ len: 200, offset: 150 }])?.remaining, 50);
  const labels = { node: 'n', namespace: 'ns', name: 'a' };
  const families = streamMetrics([{ labels, figures }]);
  assert.deepEqual(
    families.map(({ name, type, samples }) => [name, type, samples]),
    [
      ['kubevirt_vmi_migration_data_bytes_total', 'counter', [{ labels, value: 1200 }]],
      ['kubevirt_vmi_migration_data_processed_bytes', 'gauge', [{ labels, value: 250 }]],
      ['kubevirt_vmi_migration_data_remaining_bytes', 'gauge', [{ labels, value: 100 }]],
      ['kubevirt_vmi_migration_dirty_memory_rate_bytes', 'gauge', [{ labels, value: 12_288 }]],
      ['kubevirt_vmi_migration_memory_transfer_rate_bytes', 'gauge', [{ labels, value: 10_000_000 }]],
    ],
  );
});

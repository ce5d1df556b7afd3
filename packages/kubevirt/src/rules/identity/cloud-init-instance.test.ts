import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CLOUD_INIT_INSTANCE, cloudInitInstanceId } from './cloud-init-instance.ts';

const UUID = 'e9d8a4f0-7a3c-4f27-9a53-0d7c1f3f5a11';
const OTHER = '1b4e28ba-2fa1-4d2e-883f-0016d3cca427';
const marked = (text: string) => ({ [CLOUD_INIT_INSTANCE]: text });

// S-593: cloud-init sees a clone as another machine than its source, also where the user keeps the UUID.
test('cloudInitInstanceId() is the firmware UUID, and another for a machine that shares it', () => {
  assert.equal(cloudInitInstanceId(UUID, undefined), UUID);
  assert.equal(cloudInitInstanceId(UUID, { other: 'x' }), UUID);
  assert.equal(cloudInitInstanceId(UUID, marked('')), UUID);
  const ids = [
    cloudInitInstanceId(UUID, marked('a')),
    cloudInitInstanceId(UUID, marked('b')),
    // What a clone of the clone inherits: its own UUID tells it from both.
    cloudInitInstanceId(OTHER, marked('a')),
  ];
  assert.equal(new Set([UUID, OTHER, ...ids]).size, 5);
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(cloudInitInstanceId(UUID, marked('a')), ids[0]);
});

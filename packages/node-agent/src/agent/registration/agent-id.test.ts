import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Node } from '../../../../apimachinery/src/types/types.ts';
import { agentId, knownAgentId, servedByAnother } from './agent-id.ts';
import { AGENT_ID_ANNOTATION } from './node-object.ts';

// S-295
test('agentId() is made once for a directory', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'agent-id-'));
  try {
    assert.equal(await knownAgentId(directory), undefined);
    const id = await agentId(directory);
    assert.equal(await agentId(directory), id);
    assert.equal(await knownAgentId(directory), id);
  } finally {
    await rm(directory, { recursive: true });
  }
});

const node = (shown: string | undefined, ready: string): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n', ...(shown && { annotations: { [AGENT_ID_ANNOTATION]: shown } }) },
  spec: {},
  status: { conditions: [{ type: 'Ready', status: ready as 'True' }] },
});

// S-295
for (const [what, of, id, taken] of [
  ['of another agent', node('a', 'True'), 'b', true],
  ['of another agent, for one that was never here', node('a', 'True'), undefined, true],
  ['of another agent that has gone silent', node('a', 'Unknown'), 'b', false],
  ['its own', node('b', 'True'), 'b', false],
  ['of an older release', node(undefined, 'True'), 'b', false],
] as const)
  test(`servedByAnother(): a node ${what}`, () => assert.equal(servedByAnother(of, id), taken));

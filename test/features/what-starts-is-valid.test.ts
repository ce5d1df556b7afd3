/** What a fresh control plane finds in itself is not validated at every start: here it is, once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cloneJson } from '../../packages/apimachinery/src/meta/deep-clone.ts';
import type { UnstructuredObject } from '../../packages/apimachinery/src/meta/object.ts';
import { storagePrefix } from '../../packages/apimachinery/src/types/resource.ts';
import { builtinResources } from '../../packages/apiserver/src/kinds/builtin/builtin-resources.ts';
import { validateObject } from '../../packages/apiserver/src/registry/normalize-input.ts';
import { kubevirtResources } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { startInProcess } from '../testkit/in-process-control-plane.ts';

// S-208: Every object of a fresh control plane is one that a user could have written.
// S-220: Every object that a fresh control plane makes for itself is valid.
test('every object of a fresh control plane is one that a user could have written', async (t) => {
  const board = await startInProcess({ advertise: { address: '127.0.0.1', port: 6443 } });
  t.after(() => board.stop());
  const kinds = new Set<string>();
  for (const info of [...builtinResources(), ...kubevirtResources()]) {
    for (const item of board.plane.store.list(storagePrefix(info)).items) {
      const object = cloneJson(item.object) as UnstructuredObject;
      if (object.apiVersion !== (info.group === '' ? info.version : `${info.group}/${info.version}`)) continue;
      validateObject(info, object);
      kinds.add(info.kind);
    }
  }
  for (const kind of ['Namespace', 'Service', 'CustomResourceDefinition', 'FlowSchema', 'APIService', 'KubeVirt'])
    assert.ok(kinds.has(kind), kind);
});

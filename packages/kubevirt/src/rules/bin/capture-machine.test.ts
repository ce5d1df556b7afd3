import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeObject } from '../../../../apimachinery/src/meta/object.ts';
import type { VirtualMachine } from '../../kinds/kubevirt.ts';
import { captureMachine } from './capture-machine.ts';

const LABEL = 'persistent-state-for';
const vm = (domain: object): VirtualMachine =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'db', namespace: 'default', uid: 'u' },
    spec: { template: { spec: { domain: { devices: {}, ...domain } } } },
  }) as unknown as VirtualMachine;
const withState = vm({ devices: { tpm: { persistent: true } } });
const claim = (name: string, second: number, labels?: object): KubeObject =>
  ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name,
      namespace: 'default',
      creationTimestamp: `2026-01-01T00:00:0${second}Z`,
      ...(labels && { labels }),
    },
  }) as KubeObject;

const of = (name = 'db') => ({ [LABEL]: name, app: 'x' });
// S-784
for (const { what, machine = withState, claims, labels } of [
  { what: 'one by its label', claims: [claim('z', 1, of())], labels: [of()] },
  {
    what: 'of two the newer one, whatever their order',
    claims: [claim('z', 1, of()), claim('a', 2, of())],
    labels: [{ app: 'x' }, of()],
  },
  {
    what: 'one of before labels, by its name',
    claims: [claim('disk', 1), claim(`${LABEL}-db`, 1)],
    labels: [undefined, { [LABEL]: 'db' }],
  },
  {
    what: 'the labelled one beside one of before labels',
    claims: [claim(`${LABEL}-db`, 2), claim('a', 1, of())],
    labels: [undefined, of()],
  },
  { what: 'that of another machine stays its own', claims: [claim('a', 1, of('web'))], labels: [of('web')] },
  {
    what: 'none where the machine keeps no state',
    machine: vm({}),
    claims: [claim(`${LABEL}-db`, 1)],
    labels: [undefined],
  },
])
  test(`captureMachine() marks the claim with the firmware state: ${what}`, () => {
    const { content } = captureMachine({
      vm: machine,
      dependents: claims,
      volumeNamed: () => undefined,
      namespaceUid: 'n',
      withNamespace: false,
      user: '',
      now: 0,
    });
    assert.deepEqual(
      content.spec.objects.slice(1).map(({ metadata }) => metadata.labels),
      labels,
    );
  });

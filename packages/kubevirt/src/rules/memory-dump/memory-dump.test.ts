import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Part, partly } from '../../../../../test/testkit/partly.ts';
import type { PersistentVolumeClaim } from '../../../../apimachinery/src/types/types.ts';
import type { VirtualMachine, VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { DUMP_FILE_ANNOTATION, type DumpFacts, FAILED_DUMP, nextDumpStep, withoutDump } from './memory-dump.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const VOLUME = { name: 'dump', memoryDump: { claimName: 'dump', hotpluggable: true } };
type Request = NonNullable<NonNullable<VirtualMachine['status']>['memoryDumpRequest']>;
type Vmi = VirtualMachineInstance;

const vm = (request: Part<Request> | undefined, inTemplate: boolean) =>
  partly<VirtualMachine>({
    spec: { template: { spec: { volumes: inTemplate ? [VOLUME] : [] } } },
    status: request ? { memoryDumpRequest: { claimName: 'dump', ...request } } : {},
  });
const vmi = (hasVolume: boolean, status: Part<Vmi['status']> = {}) =>
  partly<Vmi>({
    metadata: {},
    spec: { volumes: [{ name: 'root' }, ...(hasVolume ? [VOLUME] : [])] },
    status: { phase: 'Running', nodeName: 'one', ...status },
  });
const claim = (phase: 'Bound' | 'Pending', note?: string) =>
  partly<PersistentVolumeClaim>({
    metadata: { uid: 'claim-uid', ...(note !== undefined && { annotations: { [DUMP_FILE_ANNOTATION]: note } }) },
    status: { phase },
  });
const volumeStatus = (phase: string, more: object = {}) => ({
  volumeStatus: [{ name: 'dump', phase, memoryDumpVolume: { startTimestamp: 's', ...more } }],
});
const ended = vmi(false, { phase: 'Failed' });
const LOST = 'the guest ended before its memory was dumped';
const next = (request: Part<Request>) => ({ type: 'request', request: { claimName: 'dump', ...request } });

describe('nextDumpStep()', () => {
  const rows: [name: string, request: Part<Request> | undefined, facts: Part<DumpFacts>, expected: object][] = [
    ['no request', undefined, {}, { type: 'nothing' }],
    [
      'into the template first',
      { phase: 'Associating' },
      { vm: vm({ phase: 'Associating' }, false), vmi: vmi(false), claim: claim('Bound') },
      { type: 'add-to-template', volume: VOLUME },
    ],
    [
      'a claim that waits for a consumer',
      { phase: 'Associating' },
      { vmi: vmi(false), claim: claim('Pending') },
      { type: 'bind', nodeName: 'one' },
    ],
    [
      'then into the instance',
      { phase: 'Associating' },
      { vmi: vmi(false), claim: claim('Bound') },
      { type: 'add-to-instance', volume: VOLUME, claimUid: 'claim-uid' },
    ],
    [
      'not while the last one is shown',
      { phase: 'Associating' },
      { vmi: vmi(false, volumeStatus('MemoryDumpCompleted')), claim: claim('Bound') },
      { type: 'wait' },
    ],
    [
      'then it runs',
      { phase: 'Associating' },
      { vmi: vmi(true), claim: claim('Bound') },
      next({ phase: 'InProgress' }),
    ],
    [
      'a claim that went',
      { phase: 'Associating' },
      { vmi: vmi(false) },
      next({ phase: 'Failed', message: 'claim dump is gone', endTimestamp: '2026-01-01T00:00:00Z' }),
    ],
    [
      'a guest that ended before',
      { phase: 'Associating' },
      { vmi: ended, claim: claim('Bound') },
      next({ phase: 'Failed', message: LOST, endTimestamp: '2026-01-01T00:00:00Z' }),
    ],
    [
      'its start',
      { phase: 'InProgress' },
      { vmi: vmi(true, volumeStatus('MemoryDumpInProgress')) },
      next({ phase: 'InProgress', startTimestamp: 's' }),
    ],
    [
      'nothing new',
      { phase: 'InProgress', startTimestamp: 's' },
      { vmi: vmi(true, volumeStatus('MemoryDumpInProgress')) },
      { type: 'nothing' },
    ],
    [
      'its end',
      { phase: 'InProgress' },
      { vmi: vmi(true, volumeStatus('MemoryDumpCompleted', { endTimestamp: 'e', targetFileName: 'f' })) },
      next({ phase: 'Unmounting', startTimestamp: 's', endTimestamp: 'e', fileName: 'f' }),
    ],
    [
      'its failure',
      { phase: 'InProgress' },
      { vmi: vmi(true, { volumeStatus: [{ name: 'dump', phase: 'MemoryDumpFailed', message: 'full' }] }) },
      next({ phase: 'Failed', message: 'full' }),
    ],
    [
      'a guest that ended meanwhile',
      { phase: 'InProgress' },
      { vmi: ended },
      next({ phase: 'Failed', message: LOST, endTimestamp: '2026-01-01T00:00:00Z' }),
    ],
    [
      'a guest that is gone',
      { phase: 'InProgress' },
      {},
      next({ phase: 'Failed', message: LOST, endTimestamp: '2026-01-01T00:00:00Z' }),
    ],
    [
      'the claim is marked',
      { phase: 'Unmounting', fileName: 'f' },
      { vmi: vmi(true), claim: claim('Bound') },
      { type: 'note', text: 'f' },
    ],
    [
      'the volume goes',
      { phase: 'Unmounting', fileName: 'f' },
      { vmi: vmi(true), claim: claim('Bound', 'f') },
      { type: 'take-from-instance' },
    ],
    [
      'and it is done',
      { phase: 'Unmounting', fileName: 'f' },
      { vmi: vmi(false), claim: claim('Bound', 'f') },
      next({ phase: 'Completed', fileName: 'f' }),
    ],
    [
      'a failure is marked',
      { phase: 'Failed' },
      { vmi: vmi(true), claim: claim('Bound') },
      { type: 'note', text: FAILED_DUMP },
    ],
    [
      'its volume goes too',
      { phase: 'Failed' },
      { vmi: vmi(true), claim: claim('Bound', FAILED_DUMP) },
      { type: 'take-from-instance' },
    ],
    ['and it stays', { phase: 'Failed' }, { vmi: vmi(false), claim: claim('Bound', FAILED_DUMP) }, { type: 'nothing' }],
    [
      'one that is done stays',
      { phase: 'Completed' },
      { vmi: vmi(false), claim: claim('Bound', 'f') },
      { type: 'nothing' },
    ],
    ['let go: the instance first', { phase: 'Dissociating' }, { vmi: vmi(true) }, { type: 'take-from-instance' }],
    ['then the template', { phase: 'Dissociating' }, { vmi: vmi(false) }, { type: 'take-from-template' }],
    [
      'then it is over',
      { phase: 'Dissociating' },
      { vm: vm({ phase: 'Dissociating' }, false) },
      { type: 'request', request: undefined },
    ],
  ];
  for (const [name, request, facts, expected] of rows)
    it(`${request?.phase ?? ''}: ${name}`, () =>
      assert.deepEqual(nextDumpStep(partly<DumpFacts>({ vm: vm(request, true), now: NOW, ...facts })), expected));
});

it('withoutDump() leaves the other volumes', () => {
  assert.deepEqual(withoutDump([VOLUME, { name: 'root' }], 'dump'), [{ name: 'root' }]);
  assert.deepEqual(withoutDump([VOLUME], 'other'), [VOLUME]);
});

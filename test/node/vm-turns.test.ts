/** The rarer turns in the life of VirtualMachines with real guests. */
// test:full: more guests, for turns and ends that are rare.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VirtualMachineInstanceSpec } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { hostAddressOf } from '../../packages/kubevirt/src/rules/launcher/pod-address.ts';
import { usualHostPort } from '../../packages/kubevirt/src/rules/machine/host-ports.ts';
import { isRunning, type ProcessIdentity } from '../../packages/runtime/src/process/identity.ts';
import { eventually } from '../testkit/eventually.ts';
import { bareSpec, kernelSpec } from './board.ts';
import { board, createVm, inConsole, remove, request, runs, setStrategy, shows, useBoard, vmOf } from './vm-life.ts';

useBoard();

test('a guest without ACPI is not waited for, and counts as shut down', async () => {
  const spec = bareSpec({ terminationGracePeriodSeconds: 600 });
  spec.domain.features = { acpi: { enabled: false } };
  await createVm('deaf', 'Manual', spec);
  await request('deaf', [{ action: 'Start' }]);
  const vmi = await runs('deaf');
  const phases: (string | undefined)[] = [];
  await request('deaf', [{ action: 'Stop', uid: vmi.metadata.uid }]);
  await eventually('gone', async () => {
    const now = await board.vmi('deaf').catch(() => undefined);
    phases.push(now?.status?.phase);
    return now === undefined;
  });
  assert.ok(!phases.includes('Failed'), phases.join());
  await remove('deaf');
});

// S-141: There are never two guests of one machine, however its strategy is turned, and the last word holds.
test('Halted and Always six times over: never two guests, and the last word holds', async () => {
  await createVm('flip', 'Always', kernelSpec({ terminationGracePeriodSeconds: 0 }));
  const seen = new Map<string, ProcessIdentity>();
  const look = async (): Promise<void> => {
    const vmi = await board.vmi('flip').catch(() => undefined);
    const record = vmi && (await board.record(vmi).catch(() => undefined));
    if (record?.process) seen.set(record.vmiUid, record.process);
    const alive = await Promise.all([...seen.values()].map((identity) => isRunning(identity)));
    assert.ok(alive.filter(Boolean).length <= 1, 'two guests of one VM');
  };
  for (let round = 0; round < 6; round++) {
    await setStrategy('flip', 'Halted');
    await look();
    await setStrategy('flip', 'Always');
    await look();
  }
  await eventually('runs', async () => {
    await look();
    const { status } = await vmOf('flip');
    return status?.printableStatus === 'Running' && status.ready === true;
  });
  await remove('flip');
});

// S-396
test('rebootPolicy Terminate: a reboot from outside ends the instance, whether it is the button or a reset', async () => {
  const spec = (): VirtualMachineInstanceSpec => {
    const kernel = kernelSpec();
    return { ...kernel, domain: { ...kernel.domain, rebootPolicy: 'Terminate' } };
  };
  await createVm('term-always', 'Always', spec());
  const first = await runs('term-always');
  // Where it listens to its power button.
  await inConsole('term-always', 'true');
  assert.equal(await board.put('term-always/softreboot'), 200);
  const second = await runs('term-always', first.metadata.uid);
  // The machine itself is reset: a reboot like any other.
  assert.equal(await board.put('term-always/reset'), 200);
  await runs('term-always', second.metadata.uid);
  await remove('term-always');
});

// S-068: A guest that shut down while no agent watched is Succeeded.
// S-142
test('a guest that shut down while no agent watched is Succeeded, and stays off under Manual', async () => {
  await createVm('alone', 'Manual');
  await request('alone', [{ action: 'Start' }]);
  const vmi = await runs('alone');
  const address = hostAddressOf(vmi.status?.interfaces?.[0]?.ipAddress ?? '');
  await inConsole('alone', '(sleep 2; poweroff) &');
  await board.restartAgent(() =>
    eventually('the guest is down', async () => {
      const answer = await fetch(`http://${address}:${usualHostPort(8080)}/`, {
        signal: AbortSignal.timeout(10_000),
      }).catch(() => undefined);
      return answer === undefined;
    }),
  );
  const ended = await board.until('alone', 'ended', (v) => ['Succeeded', 'Failed'].includes(v.status?.phase ?? ''));
  assert.equal(ended.status?.phase, 'Succeeded');
  await shows('alone', 'Stopped');
  await remove('alone');
});

/** Takes the steps of a memory dump: in the machine that is being changed, its instance and the claim. */

import { keyOf } from '@coracle/apimachinery/meta/object';
import { PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolumeClaim, ReadonlyClaim } from '@coracle/apimachinery/types/types';
import { isConflict, orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { EventRecorder } from '@coracle/client/events/recorder';
import { SELECTED_NODE } from '@coracle/cluster-rules/storage/claim-step';
import {
  type ReadonlyVmi,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachine,
  type VirtualMachineInstance,
} from '../../kinds/kubevirt.ts';
import {
  DUMP_CLAIM_ANNOTATION,
  DUMP_FILE_ANNOTATION,
  type DumpRequest,
  nextDumpStep,
  withoutDump,
} from '../../rules/memory-dump/memory-dump.ts';

/** Steps that may follow each other in one pass. */
const MOST_STEPS = 8;
/** For what no watch of this controller tells: a claim that is being bound, a status that lags behind. */
const WAITING_MS = 1000;

export interface DumpPass {
  /** Edited in place; what is in its status counts once it is stored. */
  readonly vm: VirtualMachine;
  instance: ReadonlyVmi | undefined;
  requeueMs: number | undefined;
}

/** Goes on with the request in the status of the machine. Throws what the API says, unless that is a lost race. */
export async function dumpMemory(
  pass: DumpPass,
  { client, events, now }: { readonly client: Client; readonly events: EventRecorder; readonly now: number },
): Promise<void> {
  const { vm } = pass;
  const { namespace = '' } = vm.metadata;
  for (let steps = 0; steps < MOST_STEPS && vm.status?.memoryDumpRequest; steps++) {
    const { claimName } = vm.status.memoryDumpRequest;
    const claimKey = { namespace, name: claimName };
    const claim = await orAbsent(client.get(PERSISTENT_VOLUME_CLAIMS, claimKey));
    const step = nextDumpStep({ vm, vmi: pass.instance, claim, now });
    switch (step.type) {
      case 'nothing':
        return;
      case 'wait':
        pass.requeueMs = WAITING_MS;
        return;
      case 'bind':
        pass.requeueMs = WAITING_MS;
        if (step.nodeName !== '' && claim && !claim.metadata.annotations?.[SELECTED_NODE])
          await annotate(client, claim, { [SELECTED_NODE]: step.nodeName });
        return;
      case 'note':
        if (claim) await annotate(client, claim, { [DUMP_FILE_ANNOTATION]: step.text });
        break;
      // The machine is stored before anything is done on its account.
      case 'add-to-template': {
        const spec = vm.spec.template.spec;
        if (spec) spec.volumes = [...(spec.volumes ?? []), step.volume];
        return;
      }
      case 'take-from-template': {
        const spec = vm.spec.template.spec;
        if (spec) spec.volumes = [...withoutDump(spec.volumes, claimName)] as NonNullable<typeof spec.volumes>;
        return;
      }
      case 'add-to-instance':
        if (!(await changeInstance(pass, client, { claimName, add: step }))) return;
        break;
      case 'take-from-instance':
        if (!(await changeInstance(pass, client, { claimName }))) return;
        break;
      case 'request':
        report(vm, step.request, events);
        if (step.request) vm.status.memoryDumpRequest = step.request;
        else delete vm.status.memoryDumpRequest;
        break;
      default:
        return step satisfies never;
    }
  }
}

function report(vm: VirtualMachine, request: DumpRequest | undefined, events: EventRecorder): void {
  if (request?.phase === 'Completed')
    events.event(vm, 'Normal', 'MemoryDumpCompleted', `Memory dump to PVC ${request.claimName}: ${request.fileName}`);
  if (request?.phase === 'Failed')
    events.event(vm, 'Warning', 'MemoryDumpError', `Memory dump to PVC ${request.claimName}: ${request.message}`);
}

const annotate = async (client: Client, claim: ReadonlyClaim, annotations: object) =>
  orAbsent(
    client.patch(PERSISTENT_VOLUME_CLAIMS, keyOf(claim as PersistentVolumeClaim), {
      type: 'merge',
      body: { metadata: { uid: claim.metadata.uid, annotations } },
    }),
  );

/** Puts the volume into the instance, or takes it out; false when the instance was changed by others meanwhile. */
async function changeInstance(
  pass: DumpPass,
  client: Client,
  {
    claimName,
    add,
  }: { readonly claimName: string; readonly add?: { readonly volume: object; readonly claimUid: string } },
): Promise<boolean> {
  const vmi = pass.instance as VirtualMachineInstance | undefined;
  if (!vmi) return false;
  const { uid, resourceVersion } = vmi.metadata;
  const volumes = [...withoutDump(vmi.spec.volumes, claimName), ...(add ? [add.volume] : [])];
  const body = {
    metadata: { uid, resourceVersion, annotations: { [DUMP_CLAIM_ANNOTATION]: add?.claimUid ?? null } },
    spec: { volumes },
  };
  try {
    pass.instance = await client.patch(VIRTUAL_MACHINE_INSTANCES, keyOf(vmi), { type: 'merge', body });
    return true;
  } catch (error) {
    if (!isConflict(error)) throw error;
    pass.requeueMs = WAITING_MS;
    return false;
  }
}

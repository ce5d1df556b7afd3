/**
 * What virt-api serves and guests here do not have: USB redirection, encrypted memory and VSOCK. Who asks
 * is answered with the gate or setting of the instance it would take, in upstream's words, as long as that is what is missing;
 * behind it, that it cannot be had here.
 */
import { badRequest } from '@coracle/apimachinery/meta/status';
import type { FeatureGate } from '../../../rules/machine-defaults/feature-gates.ts';
import { VMI_NOT_RUNNING, vmiConflict } from './responses.ts';
import { fetchVmi, type Handler, isRunning } from './subresource-context.ts';

const notHere = (what: string, why: string) => badRequest(`${what} is not supported here: ${why}`);

/** Behind a feature gate of the KubeVirt object. */
const gated =
  (gate: FeatureGate, missing: string, [what, why]: readonly [what: string, why: string]): Handler =>
  async ({ options }) => {
    throw options.config().isEnabled(gate) ? notHere(what, why) : badRequest(missing);
  };

export const redefineCheckpoint: Handler = gated(
  'IncrementalBackup',
  `'IncrementalBackup' feature gate is not enabled`,
  ['redefining a checkpoint', 'checkpoints are layers of volumes, and a new QEMU needs to be given none'],
);

export const vsock: Handler = gated('VSOCK', 'VSOCK feature gate not enabled: vsock endpoint is not available.', [
  'VSOCK',
  'guests have no such device; it takes /dev/vhost-vsock of the host and root',
]);

export const usbRedirection: Handler = async (call) => {
  const vmi = await fetchVmi(call);
  if (vmi.spec.domain.devices?.clientPassthrough === undefined)
    throw vmiConflict(call.key.name, 'Not configured with USB Redirection');
  throw notHere('USB redirection', 'guests have no USB redirector, and clientPassthrough has no effect');
};

/** Of SEV: no instance here has asked for attestation, because none that does is admitted. */
export const attestation: Handler = async (call) => {
  const vmi = await fetchVmi(call);
  if (!isRunning(vmi)) throw vmiConflict(call.key.name, VMI_NOT_RUNNING);
  throw vmiConflict(call.key.name, 'Attestation not requested for VMI');
};

/** Where the firmware of a guest keeps its state: with the VM, or where it lasts (`firmware-files`). */
import { copyFile, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { STATE_VOLUME } from '@coracle/kubevirt/rules/backend-storage/backend-storage';
import { MIGRATION_JOB_LABEL } from '@coracle/kubevirt/rules/launcher/launcher-labels';
import type { MachinePlan } from '@coracle/kubevirt/rules/machine/machine-plan';
import { claimDisk } from './claim-volumes.ts';
import { arrivingTpmState, EFI_VARS, lastingTpmState, lastingVariables, stateFailed } from './firmware-files.ts';
import type { VolumeRequest } from './volume-request.ts';

export interface FirmwareState {
  /** File of the EFI variables: in the directory of the VM, or absolute. */
  readonly efiVars?: string;
  /** Absolute path of the directory whose TPM state lasts. */
  readonly tpmState?: string;
}

/** Makes what the plan asks for. Throws VolumeError `FailedMount`. */
export async function firmwareState(request: VolumeRequest, plan: MachinePlan): Promise<FirmwareState> {
  const efi = plan.firmware.kind === 'efi' ? plan.firmware : undefined;
  const lasting = efi?.persistent || plan.tpm?.persistent ? await stateDirectory(request) : undefined;
  const state: { efiVars?: string; tpmState?: string } = {};
  if (efi?.persistent && lasting !== undefined) state.efiVars = await lastingVariables(lasting, efi.vars);
  else if (efi) {
    await copyFile(efi.vars, join(request.directory, EFI_VARS));
    state.efiVars = EFI_VARS;
  }
  if (plan.tpm?.persistent && lasting !== undefined) {
    const migration = request.pod.metadata.labels?.[MIGRATION_JOB_LABEL];
    const incoming = migration !== undefined;
    state.tpmState = incoming ? await arrivingTpmState(lasting, migration) : await lastingTpmState(lasting);
  }
  return state;
}

/** `files/` of the claim. */
async function stateDirectory(request: VolumeRequest): Promise<string> {
  const volume = request.pod.spec.volumes?.find(({ name }) => name === STATE_VOLUME);
  const claim = volume?.persistentVolumeClaim?.claimName;
  if (claim === undefined) throw stateFailed('the pod names no claim for it');
  // The guest has no disk of it: snapshots need not go through its QEMU, and nobody else may write meanwhile.
  const { file, volume: handle } = await claimDisk(request, STATE_VOLUME, claim, 'read');
  if (handle !== undefined) return request.pool.filesOf(handle);
  const directory = join(dirname(file), 'files');
  await mkdir(directory, { recursive: true, mode: 0o700 });
  return directory;
}

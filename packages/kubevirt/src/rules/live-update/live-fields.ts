/** What of a virtual machine's template may change while its instance runs (upstream's syncRestartRequired). */
import type { VirtualMachine } from '../../kinds/kubevirt.ts';

type Template = VirtualMachine['spec']['template'];

const PLACEMENT = ['nodeSelector', 'affinity', 'tolerations'] as const;

/** Gives `started` what `current` says in these fields, so that only the other differences are left. Changes `started`. */
export function neutraliseLiveFields(started: Template, current: Template): void {
  const before = started?.spec;
  const now = current?.spec;
  if (!before || !now) return;
  const [then, wanted] = [before.domain, now.domain];
  // A machine without any word on its processors is not compared by its sockets: upstream compares them only there.
  if (then?.cpu && wanted?.cpu) copy(then.cpu, wanted.cpu, 'sockets');
  if (then && wanted?.memory?.guest !== undefined) {
    then.memory ??= {};
    then.memory.guest = wanted.memory.guest;
  }
  for (const field of PLACEMENT) copy(before, now, field);
}

function copy<T extends object, K extends keyof T>(target: T, source: T, field: K): void {
  if (source[field] === undefined) delete target[field];
  else target[field] = source[field];
}

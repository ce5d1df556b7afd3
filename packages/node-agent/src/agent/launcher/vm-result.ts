/** How a guest ended, and what its Pod and VMI say about it. */
import type { Exit } from '@coracle/runtime/process/spawn-detached';

export interface VmResult {
  readonly phase: 'Succeeded' | 'Failed';
  /** CamelCase. */
  readonly reason: string;
  readonly message: string;
  readonly exitCode: number;
}

/** What was seen of the end. */
export interface Ending {
  /** Reason of QEMU's SHUTDOWN event, or the run state it was found in. */
  readonly shutdown?: string;
  /** The accelerator could not go on; nothing can make the guest run again. */
  readonly internalError?: boolean;
  /** How the process ended, when we were its parent. */
  readonly exit?: Exit;
  /** We ended it: 'grace' after asking by ACPI in vain, 'immediate' without asking. */
  readonly forced?: 'grace' | 'immediate';
  /** Last lines of QEMU's output. */
  readonly output?: string;
}

/** The table of endings: by the guest = Succeeded; at once by request = Succeeded; anything else = Failed. */
export function resultOf(ending: Ending): VmResult {
  const failed = (reason: string, message: string, exitCode = 1): VmResult => ({
    phase: 'Failed',
    reason,
    message,
    exitCode,
  });
  const succeeded = (message: string): VmResult => ({ phase: 'Succeeded', reason: 'Completed', message, exitCode: 0 });
  if (ending.forced === 'grace')
    return failed('ShutdownTimedOut', 'the guest did not shut down within its grace period and was ended');
  if (ending.forced === 'immediate') return succeeded('the guest was ended without asking it (no grace period)');
  switch (ending.shutdown) {
    case 'guest-shutdown':
      return succeeded('the guest shut down');
    case 'guest-reset':
    case 'host-qmp-system-reset':
      return succeeded('the guest rebooted and its reboot policy is Terminate');
    case 'host-signal':
      return failed('EndedByHost', 'QEMU was ended by a signal from the host');
    case 'guest-panic':
      return failed('GuestPanicked', 'the guest panicked');
    default:
      break;
  }
  const output = ending.output ? `: ${ending.output}` : '';
  if (ending.internalError) return failed('Crashed', `QEMU stopped the guest for an internal error${output}`);
  if (ending.exit?.signal)
    return failed(
      'Crashed',
      `QEMU was ended by ${ending.exit.signal}${output}`,
      ending.exit.signal === 'SIGKILL' ? 137 : 139,
    );
  if (ending.exit && ending.exit.code !== 0)
    return failed('Crashed', `QEMU ended with exit code ${ending.exit.code}${output}`, ending.exit.code ?? 1);
  if (ending.exit) return failed('EndedByHost', `QEMU was ordered to quit${output}`);
  return failed('Crashed', `QEMU is gone; it was not seen to end${output}`);
}

/** The result of a VM that was running before this boot of the host. */
export const HOST_REBOOTED: VmResult = {
  phase: 'Failed',
  reason: 'HostRebooted',
  message: 'the host was restarted while the guest ran',
  exitCode: 1,
};

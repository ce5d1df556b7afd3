/**
 * The sidecar in whose name the guest's serial line can be read (`kubectl logs -c guest-console-log`), as upstream's
 * pkg/virt-controller/services/serialconsolelog.go. The agent serves the log; the container stands for it.
 */

import type { Container, ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { CONFINED, isGuaranteed } from './launcher-resources.ts';

const NAME = 'guest-console-log';
const REQUESTS = { cpu: '5m', memory: '35M' };
const LIMITS = { cpu: '15m', memory: '60M' };

export interface GuestConsoleLogOptions {
  readonly launcherImage: string;
  /** What holds for instances that do not say: the opposite of the cluster's `disableSerialConsoleLog`; true when absent. */
  readonly serialConsoleLog?: boolean;
}

/** The sidecar; undefined where the serial line is not logged. */
export function guestConsoleLog(
  { metadata, spec }: ReadonlyVmi,
  options: GuestConsoleLogOptions,
): Container | undefined {
  const { autoattachSerialConsole, logSerialConsole } = spec.domain?.devices ?? {};
  if (autoattachSerialConsole === false || !(logSerialConsole ?? options.serialConsoleLog ?? true)) return undefined;
  return {
    name: NAME,
    image: options.launcherImage,
    imagePullPolicy: 'IfNotPresent',
    command: ['/usr/bin/virt-tail'],
    args: ['--logfile', `/var/run/kubevirt-private/${metadata.uid ?? ''}/virt-serial0-log`],
    restartPolicy: 'Always',
    resources: { requests: isGuaranteed(spec) ? LIMITS : REQUESTS, limits: LIMITS },
    securityContext: { ...CONFINED },
  };
}

/** True for a launcher Pod whose guest's serial line is logged. */
export const logsSerialConsole = (pod: ReadonlyPod): boolean =>
  pod.spec.initContainers?.some(({ name }) => name === NAME) ?? false;

/** `coracle status`: what runs in a data directory. */

import { NODES } from '../../api/kinds/builtin/resource-types.ts';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../api/kinds/kubevirt/kubevirt.ts';
import { clusterFrom } from '../config/cluster.ts';
import { dataDirAt, defaultDataDir } from '../config/data-dir.ts';
import { findRunning } from '../config/running.ts';
import { type CommandContext, textFlag } from './command.ts';

/** `coracle status`: exit code 0 when a control plane runs and answers, 1 when not. */
export async function status(context: CommandContext): Promise<number> {
  const { flags, environment, print } = context;
  const dir = dataDirAt(textFlag(flags, 'data-dir') ?? defaultDataDir(environment));
  const asJson = flags['json'] === true;
  const running = await findRunning(dir);
  if (!running) {
    print(
      asJson
        ? JSON.stringify({ running: false, dataDir: dir.root })
        : `not running in ${dir.root} (start: coracle up --detach)`,
    );
    return 1;
  }
  const cluster = await clusterFrom({ flags: { 'data-dir': dir.root }, environment });
  try {
    const [nodes, vms, vmis] = await Promise.all([
      cluster.client.list(NODES),
      cluster.client.list(VIRTUAL_MACHINES),
      cluster.client.list(VIRTUAL_MACHINE_INSTANCES),
    ]);
    const ready = nodes.items.filter((node) =>
      node.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True'),
    );
    const active = vmis.items.filter((vmi) => vmi.status?.phase === 'Running');
    const summary = {
      running: true,
      pid: running.process.pid,
      url: running.url,
      version: running.version,
      startedAt: running.startedAt,
      dataDir: dir.root,
      nodes: { ready: ready.length, total: nodes.items.length },
      virtualMachines: { running: active.length, total: vms.items.length },
    };
    print(
      asJson
        ? JSON.stringify(summary)
        : [
            `control plane  ${running.url}  (pid ${running.process.pid}, version ${running.version}, since ${running.startedAt})`,
            `data           ${dir.root}`,
            `nodes          ${ready.length} of ${nodes.items.length} ready`,
            `machines       ${active.length} running, ${vms.items.length} defined`,
          ].join('\n'),
    );
    return 0;
  } finally {
    await cluster.close();
  }
}

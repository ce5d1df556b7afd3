/** A short walk that every version of kubectl goes. */
import type { Step } from '../steps.ts';
import { CONFIG_MAP, VM } from './manifests.ts';

export const EVERY_VERSION: readonly Step[] = [
  { run: 'apply -f -', input: CONFIG_MAP, out: 'configmap/c created' },
  { run: 'apply --server-side -f -', input: VM, out: 'virtualmachine.kubevirt.io/vm serverside-applied' },
  { run: 'get cm c', out: 'NAME  DATA  AGE\nc  2  <age>' },
  {
    run: 'create deployment d --image=i',
    out: 'deployment.apps/d created',
    err: 'Warning: nothing acts on this Deployment yet<...>',
  },
  { run: 'scale deployment d --replicas=2', out: 'deployment.apps/d scaled' },
  { run: 'explain vm.spec.runStrategy', out: '<lines>FIELD: runStrategy <string>\n<lines>' },
  {
    run: 'delete deployment/d cm/c vm/vm',
    out: 'deployment.apps "d" deleted<from>\nconfigmap "c" deleted<from>\nvirtualmachine.kubevirt.io "vm" deleted<from>',
  },
];

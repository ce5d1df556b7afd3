import type { Group } from '../steps.ts';
import { CONFIG_MAP, VM } from './manifests.ts';

export const REMOVE: readonly Group[] = [
  {
    // S-026
    name: 'delete',
    steps: [
      { run: 'create cm c', out: 'configmap/c created' },
      { run: 'delete cm c --dry-run=server', out: 'configmap "c" deleted<from> (server dry run)' },
      { run: 'delete cm c', out: 'configmap "c" deleted<from>' },
      { run: 'delete cm c', err: 'Error from server (NotFound): configmaps "c" not found', code: 1 },
      { run: 'delete cm c --ignore-not-found', full: true },
      { run: 'apply -f -', input: CONFIG_MAP, out: 'configmap/c created' },
      { run: 'delete -f -', input: CONFIG_MAP, out: 'configmap "c" deleted<from>' },
      {
        run: 'create deployment d --image=i',
        out: 'deployment.apps/d created',
        err: 'Warning: nothing acts on this Deployment yet<...>',
      },
      { run: 'delete deployment d --cascade=orphan', out: 'deployment.apps "d" deleted<from>' },
      {
        run: 'create deployment d --image=i',
        out: 'deployment.apps/d created',
        err: 'Warning: nothing acts on this Deployment yet<...>',
      },
      { run: 'delete deployment d --cascade=foreground', out: 'deployment.apps "d" deleted<from>' },
      {
        run: 'create deployment d --image=i',
        out: 'deployment.apps/d created',
        err: 'Warning: nothing acts on this Deployment yet<...>',
      },
      { run: 'delete deployment d --cascade=background --wait=false', out: 'deployment.apps "d" deleted<from>' },
      { run: 'wait --for=delete deployment/d --timeout=60s' },
      { run: 'run p --image=i --restart=Never', out: 'pod/p created' },
      { run: 'delete pod p --now', out: 'pod "p" deleted<from>' },
      { run: 'run p --image=i --restart=Never', out: 'pod/p created' },
      {
        run: 'delete pod p --force --grace-period=0',
        out: 'pod "p" force deleted<from>',
        err: 'Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.',
      },
      { run: 'apply -f -', input: VM, out: 'virtualmachine.kubevirt.io/vm created' },
      { run: 'delete vm vm', out: 'virtualmachine.kubevirt.io "vm" deleted<from>' },
      { run: 'create sa one', out: 'serviceaccount/one created' },
      { run: 'label sa one a=b', out: 'serviceaccount/one labeled' },
      { run: 'delete sa -l a=b', out: 'serviceaccount "one" deleted<from>' },
      { run: 'delete cm --all', out: 'configmap "kube-root-ca.crt" deleted<from>' },
      { run: 'create ns {ns}-gone', out: 'namespace/{ns}-gone created' },
      { run: 'delete ns {ns}-gone --timeout=60s', out: 'namespace "{ns}-gone" deleted', err: '<lines>' },
      { run: 'get ns {ns}-gone', err: 'Error from server (NotFound): namespaces "{ns}-gone" not found', code: 1 },
    ],
  },
  {
    // S-026
    name: 'wait',
    steps: [
      {
        run: 'wait cm/w --for=create --timeout=60s',
        from: 31,
        meanwhile: [{ run: 'create cm w', out: 'configmap/w created' }],
        out: 'configmap/w condition met',
      },
      { run: 'apply -f -', input: CONFIG_MAP, out: 'configmap/c created' },
      {
        run: 'wait --for=delete cm/c --timeout=60s',
        meanwhile: [{ run: 'delete cm c --wait=false', out: 'configmap "c" deleted<from>' }],
        out: '<lines>',
      },
      { run: 'run p --image=i', out: 'pod/p created' },
      { run: 'wait pod/p --for=condition=PodScheduled=False --timeout=60s', out: 'pod/p condition met' },
      { run: "wait pod/p --for=jsonpath='{.status.phase}'=Pending --timeout=60s", out: 'pod/p condition met' },
      {
        run: 'wait pod/p --for=condition=Ready --timeout=200ms',
        err: 'error: timed out waiting for the condition on pods/p',
        code: 1,
      },
    ],
  },
];

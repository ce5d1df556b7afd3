import type { Group } from '../steps.ts';
import { CONFIG_MAP } from './manifests.ts';

const MISSPELT = CONFIG_MAP.replace('\ndata:', '\ndat:');
const POD_HEAD = 'apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\n';

export const CREATE: readonly Group[] = [
  {
    // S-026
    name: 'create',
    steps: [
      { run: 'create ns {ns}-2', out: 'namespace/{ns}-2 created' },
      { run: 'create cm c --from-literal=a=b --from-literal=empty=', out: 'configmap/c created' },
      { run: "get cm c -o jsonpath='{.data}'", out: '{"a":"b","empty":""}' },
      { run: 'create cm c', err: 'error: failed to create configmap: configmaps "c" already exists', code: 1 },
      {
        run: 'create cm c --namespace=nowhere',
        err: 'error: failed to create configmap: namespaces "nowhere" not found',
        code: 1,
      },
      { run: 'create secret generic s --from-literal=p=q', full: true, out: 'secret/s created' },
      { run: 'get secret s', full: true, out: 'NAME  TYPE  DATA  AGE\ns  Opaque  1  <age>' },
      { run: "get secret s -o jsonpath='{.data.p}'", full: true, out: 'cQ==' },
      { run: 'create sa robot', out: 'serviceaccount/robot created' },
      {
        run: 'create role r --verb=get,list --resource=pods,deployments.apps',
        out: 'role.rbac.authorization.k8s.io/r created',
      },
      {
        run: 'create rolebinding rb --role=r --serviceaccount={ns}:robot',
        out: 'rolebinding.rbac.authorization.k8s.io/rb created',
      },
      {
        run: 'create deployment d --image=i --replicas=2',
        out: 'deployment.apps/d created',
        err: 'Warning: nothing acts on this Deployment yet<...>',
      },
      { run: "get deployment d -o jsonpath='{.metadata.name} {.spec.replicas}'", full: true, out: 'd 2' },
      {
        run: 'create job j --image=i -- echo hi',
        out: 'job.batch/j created',
        err: 'Warning: nothing acts on this Job yet<...>',
      },
      {
        run: "get job j -o jsonpath='{.spec.template.spec.containers[0].command} {.spec.backoffLimit}'",
        out: '["echo","hi"] 6',
      },
      { run: 'create quota q --hard=cpu=1500m,memory=1G', out: 'resourcequota/q created' },
      { run: "get quota q -o jsonpath='{.spec.hard}'", full: true, out: '{"cpu":"1500m","memory":"1G"}' },
      { run: 'create token robot', out: 'ey<...>' },
      { run: 'create token nobody', err: 'error: failed to create token: serviceaccounts "nobody" not found', code: 1 },
      { run: 'create sa dry --dry-run=server', out: 'serviceaccount/dry created (server dry run)' },
      { run: 'get sa dry', err: 'Error from server (NotFound): serviceaccounts "dry" not found', code: 1 },
      {
        run: 'create -f -',
        input: CONFIG_MAP.replace('name: c', 'generateName: some-'),
        out: 'configmap/some-<...> created',
      },
    ],
  },
  {
    // S-117: Bad input (unknown fields, wrong types, a port out of range, YAML that is not YAML) is shown by kubectl
    //   with what, where and how to correct it.
    name: 'validation',
    steps: [
      {
        run: 'create -f -',
        input: MISSPELT,
        err: 'Error from server (BadRequest): error when creating "STDIN": ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "dat"',
        code: 1,
      },
      {
        run: 'apply -f - --validate=warn',
        input: MISSPELT,
        out: 'configmap/c created',
        err: 'Warning: unknown field "dat"',
      },
      {
        run: 'create -f - --validate=ignore',
        input: MISSPELT.replace('name: c', 'name: i'),
        out: 'configmap/i created',
      },
      {
        run: 'create -f -',
        input: `${POD_HEAD}spec: {containers: [{name: 1, image: x}]}`,
        err: 'Error from server (BadRequest): error when creating "STDIN": Pod in version "v1" cannot be handled as a Pod: spec.containers[0].name: expected string, got number 1',
        code: 1,
      },
      {
        run: 'create -f -',
        input: `${POD_HEAD}spec: {containers: []}`,
        err: 'The Pod "bad" is invalid: spec.containers: Required value',
        code: 1,
      },
      {
        run: 'create -f -',
        input: 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_}\n',
        err: `The ConfigMap "Bad_" is invalid: metadata.name: Invalid value: "Bad_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
        code: 1,
      },
      {
        run: 'create -f -',
        input:
          'apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: v}\nspec: {nope: 1, runStrategy: Halted, template: {spec: {domain: {devices: {}}}}}\n',
        err: 'Error from server (BadRequest): error when creating "STDIN": VirtualMachine in version "v1" cannot be handled as a VirtualMachine: strict decoding error: unknown field "spec.nope"',
        code: 1,
      },
      {
        run: 'create -f -',
        input: 'apiVersion: nope.io/v1\nkind: Nope\nmetadata: {name: x}\n',
        err: 'error: resource mapping not found for name: "x" namespace: "" from "STDIN": no matches for kind "Nope" in version "nope.io/v1"\nensure CRDs are installed first',
        code: 1,
      },
    ],
  },
];

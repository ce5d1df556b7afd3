/**
 * Commands whose typed client sends protobuf since kubectl 1.32. Each one sets something and leaves something at a zero
 * value that must not be taken for a choice.
 */
export const PROTOBUF_COMMANDS: readonly { readonly run: string; readonly object: string }[] = [
  { run: 'create ns {ns}-x', object: 'ns/{ns}-x' },
  { run: 'create configmap c --from-literal=a=b --from-literal=empty=', object: 'configmap/c' },
  { run: 'create secret generic s --from-literal=p=q --from-literal=empty=', object: 'secret/s' },
  {
    run: 'create secret docker-registry reg --docker-server=r.invalid --docker-username=u --docker-password=p',
    object: 'secret/reg',
  },
  { run: 'create serviceaccount sa', object: 'serviceaccount/sa' },
  { run: 'create role r --verb=get,list --resource=pods,deployments.apps --resource-name=x', object: 'role/r' },
  { run: 'create rolebinding rb --role=r --serviceaccount={ns}:sa --user=u --group=g', object: 'rolebinding/rb' },
  { run: 'create clusterrole {ns} --verb=get --non-resource-url=/x', object: 'clusterrole/{ns}' },
  {
    run: 'create clusterrole {ns}-sum --aggregation-rule=a=b',
    object: 'clusterrole/{ns}-sum',
  },
  { run: 'create clusterrolebinding {ns} --clusterrole=view --user=u', object: 'clusterrolebinding/{ns}' },
  { run: 'create deployment d --image=i --replicas=3 --port=80', object: 'deployment/d' },
  { run: 'create deployment none --image=i --replicas=0', object: 'deployment/none' },
  { run: 'create job j --image=i -- echo hi', object: 'job/j' },
  { run: "create cronjob cj --image=i --schedule='*/5 * * * *' -- date", object: 'cronjob/cj' },
  { run: 'create job from-cj --from=cronjob/cj', object: 'job/from-cj' },
  { run: 'create quota q --hard=cpu=1500m,memory=1G,pods=0 --scopes=NotBestEffort', object: 'quota/q' },
  { run: 'create pdb percent --selector=app=x --min-available=50%', object: 'pdb/percent' },
  { run: 'create pdb zero --selector=app=x --max-unavailable=0', object: 'pdb/zero' },
  { run: 'create priorityclass {ns} --value=0', object: 'priorityclass/{ns}' },
  { run: 'create priorityclass {ns}-low --value=-7 --preemption-policy=Never', object: 'priorityclass/{ns}-low' },
  { run: "create ingress i '--rule=a.invalid/b*=svc:80,tls=cert' --class=nginx", object: 'ingress/i' },
  { run: "create ingress named '--rule=a.invalid/=svc:http'", object: 'ingress/named' },
  { run: 'create service clusterip web --tcp=80:8080', object: 'service/web' },
  { run: 'create service clusterip headless --clusterip=None', object: 'service/headless' },
  { run: 'create service nodeport np --tcp=80:http', object: 'service/np' },
  { run: 'create service externalname out --external-name=x.invalid', object: 'service/out' },
  { run: 'autoscale deployment d --max=5 --min=2 --cpu-percent=70', object: 'hpa/d' },
];

import re,subprocess,sys
TR='Tool|Model|Approver|Person|ToolSource|Executor|Sandbox|ProcessHandle'
files=sys.argv[1:] or subprocess.run("git ls-files '*.rs'",shell=True,capture_output=True,text=True).stdout.split()
def match(s,i,o='{',c='}'):
    d=0; k=i
    while k<len(s):
        ch=s[k]
        if ch=='"':
            k+=1
            while s[k]!='"':
                if s[k]=='\\': k+=1
                k+=1
        elif s.startswith("//",k):
            k=s.index('\n',k)
        elif ch=="'" and re.match(r"'(\\.|[^\\'])'",s[k:k+4]): k+=len(re.match(r"'(\\.|[^\\'])'",s[k:k+4]).group())-1
        elif ch==o: d+=1
        elif ch==c:
            d-=1
            if d==0: return k
        k+=1
    raise Exception('unbalanced')
left=[]
for f in files:
    if f.startswith('crates/toolwright-core/src/') : 
        pass
    t=open(f).read(); o=t
    pos=0
    while True:
        m=re.compile(r'(?m)^(\s*)impl(<[^{]*?>)? %s for [^{;]*\{'%('(?:toolwright_core::|toolwright_runtime::)?(?:'+TR+')')).search(t,pos)
        if not m: break
        end=match(t,m.end()-1)
        block=t[m.start():end+1]
        nb=block; p2=0
        while True:
            g=re.compile(r"fn (\w+)(<'a>)?\(([^{;]*?)\)\s*->\s*(?:toolwright_core::)?BoxFuture<('a|'_), ((?:[^{;])*?)>\s*\{",re.S).search(nb,p2)
            if not g: break
            name=g.group(1)
            be=match(nb,g.end()-1)
            body=nb[g.end():be].strip()
            if name.endswith('_boxed'): p2=be; continue
            args=g.group(3)
            args=re.sub(r"&'a ",'&',args); args=re.sub(r"<'a>","<'_>",args)
            ret=g.group(5).strip()
            new=None
            bm=re.search(r'(?s)^(?P<pre>(?:(?!Box::pin).)*?)Box::pin\(async (?:move )?\{',body)
            if bm:
                e=match(body,bm.end()-1)
                rest=body[e+1:].strip()
                if rest==')':
                    new=bm.group('pre')+body[bm.end():e].strip('\n')
            elif re.match(r'(?s)^Box::pin\(',body):
                e=match(body,len('Box::pin(')-1,'(',')')
                if body[e+1:].strip()=='': new=body[len('Box::pin('):e].strip()+'.await'
            elif ';' not in body and 'match' not in body and 'if ' not in body:
                new=body+'.await'
            if new is None:
                left.append((f,name)); p2=be; continue
            sig='async fn %s(%s) -> %s {'%(name,args,ret) if ret!='()' else 'async fn %s(%s) {'%(name,args)
            rep=sig+'\n'+new+'\n}'
            nb=nb[:g.start()]+rep+nb[be+1:]
            p2=g.start()+len(rep)
        t=t[:m.start()]+nb+t[end+1:]
        pos=m.start()+len(nb)
    if t!=o:
        if not re.search(r'\bBoxFuture\b',re.sub(r'(?ms)^\s*(pub )?use [^;]*;','',t)):
            t=re.sub(r'\bBoxFuture, ','',t,1) if re.search(r'\bBoxFuture, ',t) else re.sub(r', BoxFuture\b','',t,1)
        open(f,'w').write(t); print('conv',f)
print('LEFT',left)

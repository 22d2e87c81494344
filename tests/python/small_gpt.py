"""The GPT-2 of atoll-worker in PyTorch, with its tensor names, for runs that both train; a worker process.

Usage: small_gpt.py ADDRESS NAME STATE_DIR TOKENS LAYERS HEADS WIDTH CONTEXT BATCH
"""
import array
import math
import pathlib
import sys

import torch

import atoll

VOCABULARY = 256
HEADER_BYTES = 1024


class Conv1D(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(inputs, outputs) * 0.02)
        self.bias = torch.nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = Conv1D(width, 3 * width)
        self.c_proj = Conv1D(width, width)

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = self.c_attn(x).view(batch, time, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        hidden = torch.ones(time, time, dtype=torch.bool, device=x.device).triu(1)
        mixed = scores.masked_fill(hidden, -math.inf).softmax(-1) @ v
        return self.c_proj(mixed.transpose(1, 2).reshape(batch, time, width))


class Mlp(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = Conv1D(width, 4 * width)
        self.c_proj = Conv1D(4 * width, width)

    def forward(self, x):
        return self.c_proj(torch.nn.functional.gelu(self.c_fc(x), approximate="tanh"))


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1 = torch.nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln_2 = torch.nn.LayerNorm(width)
        self.mlp = Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(torch.nn.Module):
    def __init__(self, layers, heads, width, context):
        super().__init__()
        self.transformer = torch.nn.ModuleDict({
            "wte": torch.nn.Embedding(VOCABULARY, width), "wpe": torch.nn.Embedding(context, width),
            "h": torch.nn.ModuleList(Block(width, heads) for _ in range(layers)), "ln_f": torch.nn.LayerNorm(width)})

    def forward(self, ids):
        x = self.transformer.wte(ids) + self.transformer.wpe.weight[:ids.shape[1]]
        for block in self.transformer.h:
            x = block(x)
        return self.transformer.ln_f(x) @ self.transformer.wte.weight.t()

    def loss(self, window):
        logits = self(window[:, :-1])
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())


def read_tokens(folder):
    tokens = array.array("H")
    for path in sorted(pathlib.Path(folder).glob("*train*.bin")):
        tokens.frombytes(path.read_bytes()[HEADER_BYTES:])
    return torch.tensor(tokens.tolist(), dtype=torch.long)


class Windows(torch.utils.data.Dataset):
    def __init__(self, tokens, context):
        self.tokens, self.context = tokens, context

    def __len__(self):
        return (len(self.tokens) - 1) // self.context

    def __getitem__(self, index):
        return self.tokens[index * self.context:(index + 1) * self.context + 1]


def main():
    address, name, state_dir, folder = sys.argv[1:5]
    layers, heads, width, context, batch = map(int, sys.argv[5:])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = Gpt(layers, heads, width, context)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0}], betas=(0.9, 0.99))
    loader = torch.utils.data.DataLoader(Windows(read_tokens(folder), context), batch_size=batch, shuffle=True)
    with atoll.join(address, model, optimizer, name=name, state_dir=state_dir, progress=False) as run:
        for window in run.steps(loader):
            loss = model.loss(window)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            run.report(tokens=batch * context)  # a window has one token more than it predicts
    print("ended:", run.end_text)


if __name__ == "__main__":
    main()
